"""The words that the synthetic town is named with."""

KINDS = {
    "noodles": ("Noodle Bar", "Ramen House", "Dumpling Kitchen"),
    "bakery": ("Bakery", "Patisserie", "Pie Shop"),
    "books": ("Bookshop", "Reading Room", "Library Café"),
    "climbing": ("Climbing Hall", "Boulder Gym", "Rope Park"),
    "jazz": ("Jazz Cellar", "Blues Club", "Swing Hall"),
    "garden": ("Garden", "Botanic House", "Orchard Café"),
    "cinema": ("Picture House", "Film Club", "Cinema"),
    "coffee": ("Coffee Roasters", "Espresso Bar", "Tea Room"),
    "museum": ("Museum", "Gallery", "Workshop"),
    "pub": ("Tavern", "Brewhouse", "Ale House"),
    "curry": ("Curry House", "Spice Kitchen", "Tandoor"),
    "games": ("Board Game Café", "Arcade", "Chess Club"),
}
NEIGHBOURHOODS = (
    "Harbour", "Old Mill", "Station", "Castle Hill", "Riverside", "Market", "Northgate",
    "Meadows",
)  # fmt: skip
ADJECTIVES = (
    "Blue", "Golden", "Quiet", "Crooked", "Silver", "Green", "Merry", "Little", "Scarlet",
    "Ivory", "Wandering", "Amber", "Hidden", "Copper", "Sleepy", "Bright", "Velvet", "Humble",
    "Lucky", "Misty",
)  # fmt: skip
NOUNS = (
    "Lantern", "Fox", "Anchor", "Willow", "Kettle", "Sparrow", "Compass", "Acorn", "Moon",
    "Bell", "Otter", "Feather", "Bridge", "Clover", "Harp", "Badger", "Lighthouse", "Pebble",
    "Swan", "Thistle",
)  # fmt: skip
FIRST_NAMES = (
    "Ada", "Ben", "Chloe", "David", "Elif", "Femi", "Grace", "Hugo", "Ines", "Jonas", "Kira",
    "Liam", "Maya", "Noor", "Oscar", "Priya", "Quinn", "Rosa", "Samir", "Tara", "Uma", "Victor",
    "Wanda", "Xavier", "Yuki", "Zoe", "Anton", "Bella", "Carlos", "Dina", "Emil", "Fatima",
    "Goran", "Hana", "Ivan", "Jade", "Karim", "Lena", "Marco", "Nadia", "Otto", "Paula", "Ravi",
    "Sofia", "Theo",
)  # fmt: skip
LAST_NAMES = (
    "Byrne", "Costa", "Dahl", "Evans", "Fischer", "Garcia", "Haddad", "Ito", "Jensen", "Kaya",
    "Lopez", "Moreau", "Novak", "Okafor", "Patel", "Quist", "Rossi", "Singh", "Tanaka", "Ueda",
    "Varga", "Weber", "Xu", "Young", "Zhang", "Abbott", "Berg", "Chen", "Duarte", "Ekman",
    "Farkas", "Gupta", "Holm", "Iqbal", "Jovic", "Kowalski", "Lund", "Mensah", "Nguyen",
    "Olsen", "Petrov", "Reyes", "Silva", "Thorne", "Usman", "Vidal", "Walsh", "Yilmaz",
)  # fmt: skip
