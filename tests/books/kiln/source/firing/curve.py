degrees = [20, 300, 900]
