from benchmarks.unseen import as_dataset, read_packages

STANZAS = """Package: tea
Depends: libc6 (>= 2.36), kettle:any | pot
Suggests: cup
Tag: role::program,
 uitoolkit::gtk, use::drinking
Description: warm: very

Package: pot
Recommends: lid"""


def test_what_a_package_names_is_read_without_versions_and_architectures():
    found = list(read_packages(STANZAS))
    named = {item for package, field, item in found if package == "tea" and field != "Tag"}
    assert named == {"libc6", "kettle", "pot", "cup"}
    tags = {item for _, field, item in found if field == "Tag"}
    assert tags == {"role::program", "uitoolkit::gtk", "use::drinking"}
    assert ("pot", "Recommends", "lid") in found


def test_users_and_items_with_few_pairs_are_left_out():
    often = [(f"u{user}", f"i{item}") for user in range(6) for item in range(6)]
    dataset = as_dataset("toy", [*often, *often, ("u0", "rare"), ("nobody", "i0")])
    assert dataset.counts["users"] == dataset.counts["items"] == 6
    assert dataset.counts["train"] + dataset.counts["test"] == 36
