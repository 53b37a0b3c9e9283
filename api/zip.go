package api

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// smallAnswer is the length from which an answer is compressed: a shorter one takes one
// packet either way.
const smallAnswer = 1400

// compressors are kept for the next answer: to make one takes longer than to use it.
var compressors = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return w
}}

// zipped returns a text compressed. It does so at once and not while the text is sent, so that
// no slow client keeps a compressor, which takes more memory than most answers.
func zipped(text []byte) ([]byte, error) {
	w := compressors.Get().(*gzip.Writer)
	defer compressors.Put(w)
	var to bytes.Buffer
	w.Reset(&to)
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	err := w.Close()
	return to.Bytes(), err
}

// takesGzip reports whether whoever asks accepts an answer that is compressed.
func takesGzip(r *http.Request) bool {
	for one := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, parameter, _ := strings.Cut(one, ";")
		if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
			continue
		}
		value, weighed := strings.CutPrefix(strings.ReplaceAll(strings.ToLower(parameter), " ", ""), "q=")
		weight, err := strconv.ParseFloat(value, 64)
		return !weighed || err == nil && weight > 0
	}
	return false
}
