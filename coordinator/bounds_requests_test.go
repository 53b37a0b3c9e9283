package coordinator

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/internal/rest"
	"hdsd/peer"
	"hdsd/peer/limit"
)

// TestRefusedRequestsAreLogged covers a line a second with the caller, the call and the reason.
func TestRefusedRequestsAreLogged(t *testing.T) {
	ctx := peer.With(context.Background(), peer.Caller{Address: "10.0.0.1:1"})
	for name, c := range map[string]struct {
		tell func(*refusals)
		want string
	}{
		"a call": {func(r *refusals) {
			r.reportCall(ctx, "/a.B/C", rest.TooLarge("too many: raise limits.x"))
			r.reportCall(ctx, "/a.B/C", rest.TooLarge("not again within a second"))
		}, `{"level":"warn","event":"request_refused","caller":"caller \"connection 10.0.0.1:1\"","call":"/a.B/C","reason":"too many: raise limits.x","more":0,"message":"refused a request that holds or asks for too much"}`},
		"a request by REST": {func(r *refusals) {
			q := httptest.NewRequest("POST", "/v3/x", nil)
			r.reportREST(q.WithContext(ctx), rest.TooLarge("too long"))
		}, `"call":"/v3/x","reason":"too long"`},
		"another error":          {func(r *refusals) { r.reportCall(ctx, "/a.B/C", status.Error(codes.InvalidArgument, "no")) }, ""},
		"success":                {func(r *refusals) { r.reportCall(ctx, "/a.B/C", nil) }, ""},
		"what a pool has logged": {func(r *refusals) { r.reportCall(ctx, "/a.B/C", &limit.Error{}) }, ""},
		"a checker's report": {func(r *refusals) {
			r.reportCall(ctx, checkersPrefix+"StreamHealthCheck", rest.TooLarge("report_refused has it"))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			c.tell(&refusals{log: zerolog.New(&log)})
			if got := log.String(); !strings.Contains(got, c.want) || c.want == "" && got != "" || strings.Count(got, "\n") > 1 {
				t.Errorf("logged %s\nwant %s", got, c.want)
			}
		})
	}
}
