"""Usual names of columns in English, German, French and Spanish. Compared without case, accents and
punctuation; earlier names win."""

NAMES = {
    "user": "user userid uid username customer customerid customerno customernumber member "
    "memberid person personid visitor visitorid account accountid client clientid reviewer "
    "reviewerid listener buyer buyerid shopper shopperid subscriber subscriberid player playerid "
    "profileid u nutzer nutzerid benutzer benutzerid benutzername kunde kundeid kundenid kundennr "
    "kundennummer utilisateur utilisateurid idutilisateur idclient numeroclient usuario usuarioid "
    "idusuario cliente clienteid idcliente numerocliente",
    "item": "item itemid iid product productid productcode movie movieid book bookid track trackid "
    "song songid artist artistid article articleid place placeid business businessid location "
    "locationid venue venueid stockcode contentid content asin sku isbn ean gtin game gameid video "
    "videoid recipe recipeid news newsid post postid page i "
    "artikel artikelid artikelnr artikelnummer produkt produktid produktnummer film filmid buch "
    "buchid produit produitid idproduit codeproduit idarticle livre livreid idlivre producto "
    "productoid idproducto codigoproducto articulo articuloid idarticulo pelicula libro",
    "time": "time timestamp ts datetime date when created createdat eventtime eventtimestamp "
    "eventdate visited visitedat unixreviewtime reviewtime day invoicedate orderdate orderdatetime "
    "ordertime ordertimestamp purchasedate purchasedat purchasetime transactiondate "
    "transactiontime timestampms orderedat orderat boughtat purchasedon orderedon viewedat "
    "clickedat playedat listenedat watchedat ratedat addedat occurredat loggedat dateadded "
    "zeit datum zeitpunkt zeitstempel bestelldatum kaufdatum rechnungsdatum horodatage "
    "datecommande dateachat datefacture fecha fechahora fechapedido fechacompra fechafactura",
    "rating": "rating ratings stars score overall bewertung sterne calificacion puntuacion "
    "valoracion",
    "weight": "weight plays playcount count quantity qty listencount value "
    "anzahl menge stueckzahl stuckzahl quantite cantidad",
    "kind": "kind event eventtype eventname action actiontype interaction interactiontype behavior "
    "behaviortype behaviour behaviourtype ereignis aktion evenement evento accion",
}
OPTIONAL = ("rating", "weight", "kind")  # used only if the caller asks for them
# Quantities: rows below 0 are returns, even if the column is not used as a weight.
QUANTITIES = frozenset(
    {"quantity", "qty", "anzahl", "menge", "stueckzahl", "stuckzahl", "quantite", "cantidad"}
)
WORDS = frozenset(" ".join(NAMES.values()).split()) | {"id", "title", "name", "genres", "category"}
