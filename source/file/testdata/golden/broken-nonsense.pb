error:
testdata/broken/nonsense.pb: is neither a DiscoveryResponse with resources nor a bootstrap with clusters, in protobuf's binary form
