package api_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"hdsd/api"
	"hdsd/health"
)

// voted is a fleet with three votes on each endpoint.
type voted struct{ fleet }

func (v *voted) Endpoints(ctx context.Context, q api.EndpointQuery) ([]api.EndpointHealth, bool, error) {
	found, more, err := v.fleet.Endpoints(ctx, q)
	for i := range found {
		found[i].Verdict.Observations = nil
		for j := range 3 {
			at := noon.Add(time.Duration(i*7919+j*104729) * time.Microsecond)
			found[i].Verdict.Observations = append(found[i].Verdict.Observations, health.Observation{Checker: fmt.Sprintf("checker-%d", j), Status: health.Healthy, HTTPStatusCode: 200, Time: at})
		}
	}
	return found, more, err
}

func accepting(t testing.TB, handler http.Handler, path, encodings string) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	if encodings != "" {
		r.Header.Set("Accept-Encoding", encodings)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w.Result()
}

func read(t testing.TB, from io.Reader) []byte {
	t.Helper()
	all, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestLongAnswersAreCompressed for whoever accepts that, and say the same.
func TestLongAnswersAreCompressed(t *testing.T) {
	handler, err := api.NewService(&voted{fleet{n: 1000}}).Handler()
	if err != nil {
		t.Fatal(err)
	}
	const path = "/v1/endpoints?cluster=web"
	plain := accepting(t, handler, path, "")
	want := read(t, plain.Body)
	if plain.StatusCode != http.StatusOK || plain.Header.Get("Vary") != "Accept-Encoding" || plain.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%d, %v", plain.StatusCode, plain.Header)
	}
	for range 2 { // with a new compressor, and with one that was used
		for encodings, zips := range map[string]bool{
			"": false, "br": false, "identity": false, "gzip;q=0": false, "gzip; q=0.0, br": false, "gzip;q=x": false, "xgzip": false,
			"gzip": true, "br, GZIP;q=0.5": true, "deflate,gzip": true,
		} {
			answer := accepting(t, handler, path, encodings)
			sent := read(t, answer.Body)
			if zipped := answer.Header.Get("Content-Encoding") == "gzip"; zipped != zips {
				t.Errorf("%q: compressed %v", encodings, zipped)
				continue
			}
			if length := answer.Header.Get("Content-Length"); length != "" && length != strconv.Itoa(len(sent)) {
				t.Errorf("%q: %s bytes are announced, %d come", encodings, length, len(sent))
			}
			if zips {
				if len(sent) > len(want)/8 {
					t.Errorf("%q: %d bytes of %d", encodings, len(sent), len(want))
				}
				r, err := gzip.NewReader(bytes.NewReader(sent))
				if err != nil {
					t.Fatal(err)
				}
				sent = read(t, r)
			}
			if string(sent) != string(want) {
				t.Errorf("%q: the answer is another one", encodings)
			}
		}
	}
}

// TestShortAnswersAndErrorsAreNotCompressed: that saves nothing.
func TestShortAnswersAndErrorsAreNotCompressed(t *testing.T) {
	handler, err := api.NewService(&fleet{n: 1000}).Handler()
	if err != nil {
		t.Fatal(err)
	}
	for path, code := range map[string]int{"/v1/clusters": http.StatusOK, "/v1/endpoints?cluster=none": http.StatusNotFound, "/v1/endpoints?pageToken=x": http.StatusBadRequest} {
		answer := accepting(t, handler, path, "gzip")
		if answer.StatusCode != code || answer.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %d, %v", path, answer.StatusCode, answer.Header)
		}
	}
}

// BenchmarkCompression answers with 1,000 endpoints, plain and compressed.
func BenchmarkCompression(b *testing.B) {
	handler, err := api.NewService(&voted{fleet{n: 1000}}).Handler()
	if err != nil {
		b.Fatal(err)
	}
	for _, encodings := range []string{"identity", "gzip"} {
		b.Run(encodings, func(b *testing.B) {
			size := 0
			for b.Loop() {
				size = len(read(b, accepting(b, handler, "/v1/endpoints?cluster=web", encodings).Body))
			}
			b.ReportMetric(float64(size), "bytes/answer")
		})
	}
}
