from ltocf.cli import main

main()
