package union

import (
	"errors"
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"hdsd/api"
	"hdsd/internal/redact"
	"hdsd/peer/access"
)

// Sizes in bytes.
const (
	MaxQuestion = 1 << 20
	MaxAnswer   = 32 << 20
)

// Kinds of question.
const (
	kindEndpoints = "endpoints"
	kindClusters  = "clusters"
	kindCheckers  = "checkers"
	kindPaths     = "paths"
	kindClients   = "clients"
	kindStatus    = "status"
	kindOverview  = "overview"
	kindReplica   = "replica"

	kindAcceptance = "acceptance"
	kindPreview    = "preview"
	kindOverrides  = "overrides"
)

// question is a question to another replica.
type question struct {
	Kind    string
	Visible visible // clusters that the caller may see
	Leader  bool    // only a replica that follows no other may answer

	Endpoints *api.EndpointQuery `json:",omitempty"`
	Clusters  *api.ClusterQuery  `json:",omitempty"`
	Cluster   string             `json:",omitempty"` // of kindClients; empty: all
	Limit     int                `json:",omitempty"` // of kindOverview

	Acceptance *Acceptance   `json:",omitempty"`
	Override   *api.Override `json:",omitempty"` // of kindPreview
}

// visible is a set of clusters.
type visible struct {
	All   bool
	Globs []string `json:",omitempty"`
}

func encodeVisible(c access.Clusters) visible {
	if c.All() {
		return visible{All: true}
	}
	return visible{Globs: c.Globs()}
}

func (v *visible) clusters() access.Clusters {
	if v.All {
		return access.AllClusters()
	}
	return access.ClustersOf(v.Globs...)
}

// answer is the answer to a question.
type answer struct {
	Failure *failure `json:",omitempty"`
	Value   any      `json:",omitempty"` // without a failure
}

// failure is an error of a Backend.
type failure struct {
	Reason  string `json:",omitempty"` // of an error in sentinels; else empty
	Message string
	Status  []byte `json:",omitempty"` // google.rpc.Status, without a reason
}

// sentinels are the errors about a question, by their names in a failure.
var sentinels = map[string]error{
	"UNKNOWN_CLUSTER": api.ErrUnknownCluster, "BAD_TOKEN": api.ErrBadToken, "TOO_OLD": api.ErrTooOld,
}

func encodeFailure(err error) *failure {
	f := &failure{Message: err.Error()}
	for reason, sentinel := range sentinels {
		if errors.Is(err, sentinel) {
			f.Reason = reason
			return f
		}
	}
	s, ok := status.FromError(err)
	if !ok {
		s = status.FromContextError(err) // Unknown, if it is none
	}
	f.Status, _ = proto.Marshal(s.Proto()) // a status is UTF-8, or its message goes alone
	return f
}

// err returns the error.
func (f *failure) err() error {
	if sentinel := sentinels[f.Reason]; sentinel != nil {
		return &distantError{f.Message, sentinel}
	}
	s := &statuspb.Status{}
	if err := proto.Unmarshal(f.Status, s); err != nil || s.GetCode() == 0 {
		return status.Error(codes.Unknown, f.Message)
	}
	return status.FromProto(s).Err()
}

// distantError is a sentinel with the message that another replica gave it.
type distantError struct {
	message  string
	sentinel error
}

func (e *distantError) Error() string { return e.message }

func (e *distantError) Unwrap() error { return e.sentinel }

// isFinal reports whether an error is about the question, so that every replica would give it.
func isFinal(err error) bool {
	for _, sentinel := range sentinels {
		if errors.Is(err, sentinel) {
			return true
		}
	}
	switch status.Code(err) {
	case codes.InvalidArgument, codes.NotFound, codes.OutOfRange, codes.PermissionDenied, codes.Unauthenticated, codes.FailedPrecondition:
		return true
	default:
		return false
	}
}

// cluster is a cluster whose health checks are encoded protobuf messages, without secrets.
type cluster struct {
	api.Cluster
	HealthChecks [][]byte `json:",omitempty"`
}

func encodeCluster(c api.Cluster) (cluster, error) {
	encoded := cluster{Cluster: c}
	for _, check := range c.HealthChecks {
		shown := proto.CloneOf(check)
		redact.Message(shown)
		text, err := proto.Marshal(shown)
		if err != nil {
			return encoded, fmt.Errorf("encoding a health check of the cluster %s: %w", c.Name, err)
		}
		encoded.HealthChecks = append(encoded.HealthChecks, text)
	}
	return encoded, nil
}

// decode returns the cluster. It omits health checks that this release cannot read.
func (c *cluster) decode() api.Cluster {
	decoded := c.Cluster
	decoded.HealthChecks = nil
	for _, text := range c.HealthChecks {
		check := &corev3.HealthCheck{}
		if proto.Unmarshal(text, check) == nil {
			decoded.HealthChecks = append(decoded.HealthChecks, check)
		}
	}
	return decoded
}
