package fields

// Fields of the messages of protobuf and of discovery.
const (
	AnyTypeURL      = 1
	AnyValue        = 2
	DurationSeconds = 1
	DurationNanos   = 2
	StatusMessage   = 2
	UInt32Value     = 1

	ResourceVersion = 1
	ResourceBody    = 2
	ResourceName    = 3
	ResourceTTL     = 6
	ResourceLocated = 8

	RequestVersion          = 1 // of a DiscoveryRequest
	RequestNode             = 2
	RequestNames            = 3
	RequestTypeURL          = 4
	RequestNonce            = 5
	RequestRefusal          = 6
	DeltaRequestNode        = 1 // of a DeltaDiscoveryRequest
	DeltaRequestTypeURL     = 2
	DeltaRequestSubscribe   = 3
	DeltaRequestUnsubscribe = 4
	DeltaRequestVersions    = 5
	DeltaRequestNonce       = 6
	DeltaRequestRefusal     = 7
	DeltaRequestLocators    = 8 // resource_locators_subscribe and _unsubscribe
	DeltaRequestGivenUp     = 9

	ResponseVersion             = 1 // of a response of either kind
	ResponseResources           = 2
	ResponseTypeURL             = 4
	ResponseNonce               = 5
	StateResponseControlPlane   = 6 // of a DiscoveryResponse
	StateResponseErrors         = 7
	DeltaResponseRemoved        = 6 // of a DeltaDiscoveryResponse
	DeltaResponseControlPlane   = 7
	DeltaResponseRemovedLocated = 8
	DeltaResponseErrors         = 9
	ControlPlaneIdentifier      = 1
)

// WrapperType is the type URL of a Resource, which wraps another resource.
const WrapperType = "type.googleapis.com/envoy.service.discovery.v3.Resource"

// Name is the field with the name of a Cluster, of a ClusterLoadAssignment, and of any other
// resource of Envoy's.
const Name = 1

// Fields of Cluster, ClusterLoadAssignment and the messages in them.
const (
	ClusterHealthChecks  = 8
	ClusterAssignment    = 33
	AssignmentLocalities = 2
	AssignmentPolicy     = 4
	PolicyStaleAfter     = 4
	LocalityName         = 1 // of LocalityLbEndpoints and of an HDS LocalityEndpoints
	LocalityEndpoints    = 2
	LocalityWeight       = 3
	LbEndpointEndpoint   = 1
	LbEndpointHealth     = 2
	EndpointAddress      = 1
	AddressSocket        = 1
	AddressPipe          = 2
	SocketAddress        = 2
	SocketPort           = 3
	PipePath             = 1
)
