package rest

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// FuzzQueries asks a coordinator whatever can stand behind the question mark:
// it never fails, and its refusals are as the document says.
func FuzzQueries(f *testing.F) {
	s := newSite(f, static("web", httpCheck, "127.0.0.1:1", "127.0.0.2:1"), unchecked)
	s.eventually("the clusters", func() bool { return len(items(s.get("/v1/clusters"))) == 2 })
	paths := append([]string{"watch", "freeze", "trust", "overrides"}, lists...)
	for i, list := range lists {
		answer := s.get("/v1/" + list + "?pageSize=1")
		token, _ := answer["nextPageToken"].(string)
		f.Add(uint8(i+3), "pageSize=1&pageToken="+token)
		if raw, err := base64.RawURLEncoding.DecodeString(token); err == nil && len(raw) > 8 {
			for _, forged := range []string{"null", "[]", "{}", `""`, `{"After":{"Cluster":"zzz"},"Start":"9999-12-31T23:59:59Z","End":"0001-01-01T00:00:00Z"}`} {
				f.Add(uint8(i+3), "pageToken="+base64.RawURLEncoding.EncodeToString(append(raw[:8:8], forged...)))
			}
		}
	}
	for _, query := range []string{
		"", "cluster=web&address=&health=&asOf=", "asOf=9999-12-31T23:59:59.999999999Z", "asOf=0001-01-01T00:00:00Z", "startTime=9999-12-31T23:59:59Z&endTime=0001-01-01T00:00:00Z",
		"startTime=1677-01-01T00:00:00Z&newestFirst=1", "endTime=2263-01-01T00:00:00Z", "health=3&pageSize=0", "pageSize=-0", "cluster=%00", "address=[::]:1", "a;b=c", "%", "=&=",
		"resumeToken=AAAA", "resume_token=" + strings.Repeat("A", 500), "author=x", "cluster=web&all=true",
	} {
		for i := range paths {
			f.Add(uint8(i), query)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, query string) {
		if strings.ContainsFunc(query, func(r rune) bool { return r <= ' ' || r == '#' || r >= 0x7f }) {
			t.Skip() // nothing that a client sends
		}
		path := "/v1/" + paths[int(which)%len(paths)]
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		request := (&http.Request{Method: http.MethodGet, URL: &url.URL{Scheme: "http", Host: s.HTTPAddress(), Path: path, RawQuery: query}}).WithContext(ctx)
		response, err := s.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		a := &Answer{Method: http.MethodGet, Target: path, Status: response.StatusCode, Header: response.Header}
		if path == "/v1/watch" && a.Status == http.StatusOK {
			return // it goes on for ever
		}
		if a.Body, err = io.ReadAll(response.Body); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if err := s.document.Check(a); err != nil || a.Status >= http.StatusInternalServerError {
			t.Errorf("GET %s?%s: %d %s: %v", path, query, a.Status, a.Body, err)
		}
	})
}
