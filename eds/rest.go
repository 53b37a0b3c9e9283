package eds

import (
	"net/http"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"hdsd/eds/poll"
	"hdsd/internal/rest"
)

// The paths that Handler serves.
const (
	EndpointsPath = "/v3/discovery:endpoints"
	ClustersPath  = "/v3/discovery:clusters"
)

// Handler serves fetches by REST: a POST of a DiscoveryRequest in proto3 JSON. The answer
// is a DiscoveryResponse, or 304 if version_info is the latest version or error_detail is
// about it. Resources that do not exist are not in it: an Envoy that polls keeps the
// endpoints of an assignment that is gone. Unknown fields of a request are ignored.
// Resources that JSON cannot express are left out of the response.
func (s *Server) Handler() http.Handler {
	return &rest.Server{
		Paths: map[string]func(*http.Request, []byte) (rest.Answer, error){
			EndpointsPath: s.fetcher.overREST(s.published.assignments),
			ClustersPath:  s.fetcher.overREST(s.published.clusters),
		},
		MaxBytes: s.maxBodyBytes,
		Budget:   s.bodies,

		MaxBytesField: "limits.max_message_bytes",
	}
}

// overREST serves fetches of one type.
func (s *fetcher) overREST(t *table) func(*http.Request, []byte) (rest.Answer, error) {
	return func(r *http.Request, body []byte) (rest.Answer, error) {
		done, err := s.turn(r.Context())
		if err != nil {
			return nil, err
		}
		defer done()
		if err := s.limiter.countText(body); err != nil {
			return nil, err
		}
		m := new(discoveryv3.DiscoveryRequest)
		if err := rest.Unmarshal(protojson.UnmarshalOptions{DiscardUnknown: true}, body, m); err != nil {
			return nil, err
		}
		f, err := s.fetch(r.Context(), t, m)
		if err != nil {
			return nil, err
		}
		s.record(poll.ByREST, m, f, time.Now())
		if f.isKnown(m) {
			s.recorder.unchanged(t)
			return nil, nil
		}
		return rest.Text(s.text(f)...), nil
	}
}
