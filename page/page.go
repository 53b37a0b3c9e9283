package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
	"strings"

	"hdsd/internal/rest"
)

//go:embed dist/index.html dist/app.js dist/app.css dist/licences.txt
var dist embed.FS

// files are the served files, by path.
var files = map[string]string{"/": "index.html", "/app.js": "app.js", "/app.css": "app.css", "/licences.txt": "licences.txt"}

// Paths returns the paths of the page.
func Paths() []string { return []string{"/", "/app.css", "/app.js", "/licences.txt"} }

// policy lets the page load its own files and ask its own server, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// file is a file in its served forms.
type file struct {
	kind          string
	tag           string
	plain, zipped []byte
}

// Handler serves the page. It has no secrets, so it needs no role: its requests do.
func Handler() (http.Handler, error) {
	served := map[string]*file{}
	for urlPath, name := range files {
		f, err := load(name)
		if err != nil {
			return nil, err
		}
		served[urlPath] = f
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := served[r.URL.Path]
		if f == nil {
			http.NotFound(w, r)
			return
		}
		f.serve(w, r)
	}), nil
}

func load(name string) (*file, error) {
	plain, err := dist.ReadFile("dist/" + name)
	if err != nil {
		return nil, err
	}
	var zipped bytes.Buffer
	w, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(plain)
	}
	if err == nil {
		err = w.Close()
	}
	sum := sha256.Sum256(plain)
	return &file{kind: mime.TypeByExtension(path.Ext(name)), tag: `"` + hex.EncodeToString(sum[:8]) + `"`, plain: plain, zipped: zipped.Bytes()}, err
}

// serve sends a file unless the browser has it. Browsers ask each time, so that a new hdsd shows
// its own page.
func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", "no-cache")
	h.Set("Vary", "Accept-Encoding")
	h.Set("ETag", f.tag)
	if isCached(r, f.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	content := f.plain
	if rest.TakesGzip(r) {
		h.Set("Content-Encoding", "gzip")
		content = f.zipped
	}
	_, _ = w.Write(content) // the browser may have gone
}

// isCached reports whether the browser has the file with a tag.
func isCached(r *http.Request, tag string) bool {
	for candidate := range strings.SplitSeq(strings.Join(r.Header.Values("If-None-Match"), ","), ",") {
		if strings.TrimPrefix(strings.TrimSpace(candidate), "W/") == tag {
			return true
		}
	}
	return false
}
