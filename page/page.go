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

// files are what is served, by path.
var files = map[string]string{"/": "index.html", "/app.js": "app.js", "/app.css": "app.css", "/licences.txt": "licences.txt"}

// Paths are those of the page.
func Paths() []string { return []string{"/", "/app.css", "/app.js", "/licences.txt"} }

// policy lets the page load its own files and ask its own server, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// file is one in the forms in which it is sent.
type file struct {
	kind          string
	tag           string
	plain, zipped []byte
}

// Handler serves the page. There is no secret in it, so it needs no role: what it asks for does.
func Handler() (http.Handler, error) {
	all := map[string]*file{}
	for at, name := range files {
		f, err := load(name)
		if err != nil {
			return nil, err
		}
		all[at] = f
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := all[r.URL.Path]
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

// serve sends a file unless the browser has it. Browsers ask each time, so that a new hdsd has
// its own page.
func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", "no-cache")
	h.Set("Vary", "Accept-Encoding")
	h.Set("ETag", f.tag)
	if has(r, f.tag) {
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

// has reports whether the browser has the file with a tag.
func has(r *http.Request, tag string) bool {
	for one := range strings.SplitSeq(strings.Join(r.Header.Values("If-None-Match"), ","), ",") {
		if strings.TrimPrefix(strings.TrimSpace(one), "W/") == tag {
			return true
		}
	}
	return false
}
