"""Programs under the name of a GPU that is not there: their launches are captured or executed."""
