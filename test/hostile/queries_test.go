package hostile

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

func (s *site) badQueries(t *testing.T) {
	for query, want := range map[string]int{
		"/v1/endpoints?cluster=nowhere":                      404,
		"/v1/endpoints?cluster=%ff%fe":                       400,
		"/v1/endpoints?pageSize=-1":                          400,
		"/v1/endpoints?pageSize=99999999999999999999":        400,
		"/v1/endpoints?pageToken=%00%ff":                     400,
		"/v1/endpoints?health=ILL":                           400,
		"/v1/endpoints?asOf=yesterday":                       400,
		"/v1/endpoints?nothing=1":                            400,
		"/v1/transitions?startTime=0000":                     400,
		"/v1/transitions?pageToken=AAAA":                     400,
		"/v1/transitions?startTime=9999999-01-01T00:00:00Z":  400,
		"/v1/availability?cluster=nowhere":                   404,
		"/v1/watch?cluster=nowhere":                          404,
		"/v1/watch?resumeToken=x":                            400,
		"/v1/nothing":                                        404,
		"/v1/endpoints/../../etc/passwd":                     404,
		"/v3/discovery:client_status?node=1":                 400,
		"/v3/discovery:health_check":                         405,
		"/v1/endpoints?cluster=" + strings.Repeat("x", 8000): 404,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.HTTP+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := asking.Do(request)
		if err != nil {
			t.Errorf("%.80s: %v", query, err)
			continue
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != want || err != nil || len(body) > 10_000 {
			t.Errorf("%.80s: %d %.200s, want %d", query, answer.StatusCode, body, want)
		}
	}
	for _, body := range []string{"", "{", "[]", `{"healthCheckRequest":{}}`, `{"healthCheckRequest":{"node":{"id":7}}}`, strings.Repeat(`{"a":`, 100_000), strings.Repeat("[", 1_000_000)} {
		for _, path := range []string{"/v3/discovery:health_check", "/v2/discovery:health_check"} {
			if code := s.post(t, path, strings.NewReader(body), ""); code != 400 && code != 401 {
				t.Errorf("%.40q for %s: %d", body, path, code)
			}
		}
	}
	queries := hdsdv1.NewQueryClient(s.dial(t))
	_, noCluster := queries.ListEndpoints(t.Context(), &hdsdv1.ListEndpointsRequest{Cluster: "nowhere"})
	_, badSize := queries.ListEndpoints(t.Context(), &hdsdv1.ListEndpointsRequest{PageSize: -1})
	_, badToken := queries.ListTransitions(t.Context(), &hdsdv1.ListTransitionsRequest{PageToken: "x"})
	_, badTime := queries.ListTransitions(t.Context(), &hdsdv1.ListTransitionsRequest{StartTime: &timestamppb.Timestamp{Seconds: 1 << 60}})
	for i, got := range []error{noCluster, badSize, badToken, badTime} {
		if want := []codes.Code{codes.NotFound, codes.InvalidArgument, codes.InvalidArgument, codes.InvalidArgument}[i]; status.Code(got) != want {
			t.Errorf("query %d: %v, want %v", i, got, want)
		}
	}
}
