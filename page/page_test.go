package page

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func ask(t *testing.T, path string, headers ...string) *http.Response {
	t.Helper()
	handler, err := Handler()
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w.Result()
}

func text(t *testing.T, from io.Reader) string {
	t.Helper()
	all, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

// TestEachFileIsServed, compressed for whom that is right, and not again to whom has it.
func TestEachFileIsServed(t *testing.T) {
	for _, path := range Paths() {
		plain := ask(t, path)
		content := text(t, plain.Body)
		if plain.StatusCode != http.StatusOK || content == "" || plain.Header.Get("Content-Encoding") != "" || plain.Header.Get("Content-Type") == "" {
			t.Errorf("%s: %d, %d bytes, %v", path, plain.StatusCode, len(content), plain.Header)
		}
		if refused := ask(t, path, "Accept-Encoding: gzip;q=0, br"); refused.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s is compressed for a browser that does not want that", path)
		}
		zipped := ask(t, path, "Accept-Encoding: br, gzip;q=0.8")
		if zipped.Header.Get("Content-Encoding") != "gzip" {
			t.Fatalf("%s is not compressed", path)
		}
		r, err := gzip.NewReader(zipped.Body)
		if err != nil {
			t.Fatal(err)
		}
		if got := text(t, r); got != content {
			t.Errorf("%s has other content when it is compressed", path)
		}
		if again := ask(t, path, "If-None-Match: W/"+plain.Header.Get("ETag")); again.StatusCode != http.StatusNotModified {
			t.Errorf("%s again: %d", path, again.StatusCode)
		}
	}
	if other := ask(t, "/index.html"); other.StatusCode != http.StatusNotFound {
		t.Errorf("/index.html: %d", other.StatusCode)
	}
}

// TestThePageNeedsNobodyElse: it names no other host that a browser would ask, has no script or
// style in the document, and a policy that forbids both.
func TestThePageNeedsNobodyElse(t *testing.T) {
	policy := ask(t, "/").Header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") {
		t.Errorf("the policy is %q", policy)
	}
	document := text(t, ask(t, "/").Body)
	if inline := regexp.MustCompile(`<style|<script[^>]*>[^<]|\son\w+=|\sstyle=`).FindString(document); inline != "" {
		t.Errorf("the document has %q", inline)
	}
	for _, path := range []string{"/", "/app.css", "/app.js"} {
		for _, host := range regexp.MustCompile(`https?://[\w.]+`).FindAllString(text(t, ask(t, path).Body), -1) {
			if host != "http://www.w3.org" { // names of namespaces, which nobody loads
				t.Errorf("%s names %s", path, host)
			}
		}
	}
}

// TestTheFirstViewIsSmall: under 100 kB, compressed.
func TestTheFirstViewIsSmall(t *testing.T) {
	size := 0
	for _, path := range []string{"/", "/app.css", "/app.js"} {
		size += len(text(t, ask(t, path, "Accept-Encoding: gzip").Body))
	}
	if size > 100_000 {
		t.Errorf("the first view takes %d bytes", size)
	}
}
