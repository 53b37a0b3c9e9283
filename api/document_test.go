package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/api"
	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/test/rest"
)

// broken is a Backend that answers nothing but an error.
type broken struct {
	fleet
	err error
}

func (b *broken) Endpoints(context.Context, api.EndpointQuery) ([]api.EndpointHealth, bool, error) {
	return nil, false, b.err
}

func (b *broken) Watch(context.Context, api.WatchQuery) (api.Watcher, error) { return nil, b.err }

func TestFailuresAreAsTheDocumentSays(t *testing.T) {
	document := rest.Load(t)
	for want, err := range map[int]error{
		http.StatusServiceUnavailable:  status.Error(codes.Unavailable, "hdsd is stopping"),
		http.StatusInternalServerError: errors.New("disk"),
		http.StatusBadRequest:          api.ErrTooOld,
		http.StatusNotFound:            fmt.Errorf("%w %q", api.ErrUnknownCluster, "x"),
	} {
		handler, failure := api.NewService(&broken{err: err}).Handler()
		if failure != nil {
			t.Fatal(failure)
		}
		for _, path := range []string{"/v1/endpoints", "/v1/watch"} {
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
			if answer.Code != want {
				t.Errorf("GET %s: %d, want %d", path, answer.Code, want)
			}
			if err := document.Check(&rest.Answer{Method: http.MethodGet, Target: path, Status: answer.Code, Header: answer.Header(), Body: answer.Body.Bytes()}); err != nil {
				t.Errorf("GET %s, %d: %v", path, answer.Code, err)
			}
		}
	}
}

func TestEventsAreAsTheDocumentSays(t *testing.T) {
	document := rest.Load(t)
	handler, err := api.NewService(&fleet{n: 1, end: api.ErrTooOld}).Handler()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/v1/watch", "/v1/watch?by=cluster"} {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		if err := document.Check(&rest.Answer{Method: http.MethodGet, Target: path, Status: answer.Code, Header: answer.Header(), Body: answer.Body.Bytes()}); err != nil {
			t.Error(err)
		}
	}
	if unseen := document.Unseen(); slices.ContainsFunc(unseen, func(what string) bool { return strings.HasPrefix(what, "event ") }) {
		t.Errorf("unseen: %v", unseen)
	}
}

// TestTheDocumentHasTheBounds: what is no part of the protos.
func TestTheDocumentHasTheBounds(t *testing.T) {
	code, _, text := get(t, &fleet{}, "/v1/openapi.json")
	if code != http.StatusOK || text != string(hdsdv1.OpenAPIJSON) {
		t.Fatalf("%d %s", code, text)
	}
	var document struct {
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name   string
				Schema struct{ Minimum, Maximum, Default int }
			}
		}
	}
	if err := json.Unmarshal(hdsdv1.OpenAPIJSON, &document); err != nil {
		t.Fatal(err)
	}
	sizes := 0
	for path, methods := range document.Paths {
		for _, p := range methods["get"].Parameters {
			if p.Name != "pageSize" {
				continue
			}
			if sizes++; p.Schema.Minimum != 0 || p.Schema.Maximum != api.MaxPageSize || p.Schema.Default != api.DefaultPageSize {
				t.Errorf("%s: %+v", path, p.Schema)
			}
		}
	}
	if sizes != 11 {
		t.Errorf("%d lists have a page size", sizes)
	}
}

func TestRefusalsSayHowToFixThem(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/clusters?clutser=x":                    `query: unknown parameter "clutser": /v1/clusters takes cluster, locality, pageSize, pageToken, unhealthy`,
		"/v1/endpoints?health=SICK":                 `query: health: "SICK" is not one of UNKNOWN, HEALTHY, UNHEALTHY, DRAINING, TIMEOUT, DEGRADED`,
		"/v1/endpoints?pageSize=many":               `query: pageSize: "many" is not a number, or too large`,
		"/v1/endpoints?as_of=null":                  `query: as_of: "null" is not a time in RFC 3339, such as 2026-01-02T15:04:05Z (a + before hours is %2B in a URL)`,
		"/v1/transitions?newestFirst=yes":           `query: newestFirst: "yes" is neither true nor false`,
		"/v1/transitions?pageSize=1&page_size=2":    `query: parameter page_size is given as pageSize, too`,
		"/v1/watch?cluster=%ff":                     `query: cluster: "\xff" is not UTF-8`,
		"/v1/watch?cluster=a&cluster=b":             `query: parameter cluster is given 2 times`,
		"/v1/endpoints?asOf=2026-01-02T03:04:05+01": `query: asOf: "2026-01-02T03:04:05 01" is not a time in RFC 3339, such as 2026-01-02T15:04:05Z (a + before hours is %2B in a URL)`,
	} {
		if code, body, _ := get(t, &fleet{n: 1}, path); code != http.StatusBadRequest || body["message"] != want {
			t.Errorf("GET %s: %d\n%s, want\n%s", path, code, body["message"], want)
		}
	}
}

// TestMessagesStayShort: however long what they quote is.
func TestMessagesStayShort(t *testing.T) {
	long := strings.Repeat("é", 100_000)
	for path, end := range map[string]string{
		"/v1/endpoints?cluster=" + long:    "unknown cluster",
		"/v1/endpoints?" + long + "=1":     "takes address, asOf, cluster, health, locality, pageSize, pageToken, unhealthy",
		"/v1/endpoints?pageToken=" + long:  "repeat the first request without it",
		"/v1/availability?endTime=" + long: "(a + before hours is %2B in a URL)",
		"/v1/" + long:                      "not found",
	} {
		code, body, _ := get(t, &fleet{n: 1}, path)
		message, _ := body["message"].(string)
		if code < 400 || len(message) > 1100 || !strings.HasSuffix(message, end) {
			t.Errorf("%.40s: %d, %d bytes: %.2000s", path, code, len(message), message)
		}
	}
	_, err := api.NewService(&broken{err: fmt.Errorf("%w %q", api.ErrUnknownCluster, long)}).ListEndpoints(t.Context(), &hdsdv1.ListEndpointsRequest{})
	if status.Code(err) != codes.NotFound || len(err.Error()) > 1100 {
		t.Errorf("%d bytes over gRPC", len(err.Error()))
	}
}
