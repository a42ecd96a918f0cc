"""ltocf demo"""
