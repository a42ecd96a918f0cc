"""What columns are usually called. Compared without case and punctuation; earlier names win."""

NAMES = {
    "user": "user userid uid username customer customerid member memberid person personid visitor "
    "visitorid account accountid client clientid reviewer reviewerid listener u",
    "item": "item itemid iid product productid movie movieid book bookid track trackid song songid "
    "artist artistid article articleid place placeid business businessid location locationid venue "
    "venueid asin sku isbn game gameid page i",
    "time": "time timestamp ts datetime date when created createdat eventtime visited visitedat "
    "unixreviewtime day",
    "rating": "rating ratings stars score overall",
    "weight": "weight plays playcount count quantity value",
}
OPTIONAL = ("rating", "weight")  # they count only if they are asked for
WORDS = frozenset(" ".join(NAMES.values()).split()) | {"id", "title", "name", "genres", "category"}
