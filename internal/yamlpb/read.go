package yamlpb

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// ReadFile reads a file of at most this many bytes. Its error names no path.
func ReadFile(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, unreadable(err)
	}
	defer file.Close()
	var data bytes.Buffer
	if info, err := file.Stat(); err == nil && info.Size() <= limit {
		data.Grow(int(info.Size()) + bytes.MinRead)
	}
	if _, err := data.ReadFrom(io.LimitReader(file, limit+1)); err != nil {
		return nil, unreadable(err)
	}
	if int64(data.Len()) > limit {
		return nil, fmt.Errorf("is larger than %d bytes, the most that is read", limit)
	}
	return data.Bytes(), nil
}

func unreadable(err error) error {
	if cause, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("cannot be read: %w", cause.Err)
	}
	return fmt.Errorf("cannot be read: %w", err)
}
