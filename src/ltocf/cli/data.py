"""ltocf prepare, datasets"""
