package yamlpb

import _ "hdsd/gen/envoy" // links the types that an Any of a cluster or its endpoints may hold
