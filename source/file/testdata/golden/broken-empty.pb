error:
testdata/broken/empty.pb: is empty
