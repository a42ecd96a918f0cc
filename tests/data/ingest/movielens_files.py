"""MovieLens' files in their exact form, with ratings and titles of our own."""

from pathlib import Path

MOVIES = [
    (1, "Tea Story (1995)", "Animation|Children's|Comedy"),
    (2, '"Great Kettles": Cats (1998)', "Musical"),
    (3, "Misérables, Les (1995)", "Drama"),
    (10, "Kettle, The (1996)", "Thriller"),
    (3952, "Contender: Steam (2000)", "Drama|Thriller"),
]
RATINGS = [
    (user, movie, 1 + (3 * user + index) % 5, 978300000 + 60 * user + index)
    for user in range(1, 31)
    for index, (movie, _, _) in enumerate(MOVIES)
    if (user + index) % 4
]
FORMS = ["ml-100k", "ml-1m", "ml-25m"]


def write_movielens(folder: Path, form: str) -> tuple[Path, Path]:
    """The form's own files, and some that come with them; returns the log and the movies."""
    folder.mkdir(parents=True)
    (folder / "README").write_bytes(b"SUMMARY\n\xe9\n")
    if form == "ml-1m":
        ratings = "".join("::".join(map(str, row)) + "\n" for row in RATINGS)
        movies = "".join("::".join(map(str, row)) + "\n" for row in MOVIES)
        (folder / "ratings.dat").write_text(ratings, encoding="latin-1")
        (folder / "movies.dat").write_text(movies, encoding="latin-1")
        (folder / "users.dat").write_text("1::F::1::10::48067\n")
        return folder / "ratings.dat", folder / "movies.dat"
    if form == "ml-100k":
        ratings = "".join("\t".join(map(str, row)) + "\n" for row in RATINGS)
        rest = "01-Jan-1995||http://us.imdb.com/M/title-exact|" + "|".join("0" * 19)
        movies = "".join(f"{movie}|{title}|{rest}\n" for movie, title, _ in MOVIES)
        (folder / "u.data").write_text(ratings)
        (folder / "u.item").write_text(movies, encoding="latin-1")
        (folder / "u.user").write_text("1|24|M|technician|85711\n")
        (folder / "u.genre").write_text("unknown|0\nAction|1\n\n")
        return folder / "u.data", folder / "u.item"
    ratings = "".join(",".join(map(str, row)) + "\r\n" for row in RATINGS)
    (folder / "ratings.csv").write_text("userId,movieId,rating,timestamp\r\n" + ratings, newline="")
    quoted = "".join(
        f'{movie},"{title.replace(chr(34), chr(34) * 2)}",{genres}\r\n'
        for movie, title, genres in MOVIES
    )
    (folder / "movies.csv").write_text("movieId,title,genres\r\n" + quoted, "utf-8", newline="")
    (folder / "links.csv").write_text("movieId,imdbId,tmdbId\r\n1,0114709,862\r\n", newline="")
    return folder / "ratings.csv", folder / "movies.csv"
