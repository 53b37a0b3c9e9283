package api

import (
	"bytes"
	"compress/gzip"
	"io"
	"sync"
)

// smallAnswer is the length from which an answer is compressed: a shorter one takes one packet
// either way.
const smallAnswer = 1400

// compressors are reused: making one takes longer than using it.
var compressors = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return w
}}

// zipped returns a compressed text. It compresses before sending, so that no slow client keeps a
// compressor, which takes more memory than most answers.
func zipped(text []byte) ([]byte, error) {
	w := compressors.Get().(*gzip.Writer)
	defer func() {
		w.Reset(io.Discard) // or it would keep the answer
		compressors.Put(w)
	}()
	var buffer bytes.Buffer
	w.Reset(&buffer)
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	err := w.Close()
	return buffer.Bytes(), err
}
