package yamlpb

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// ReadFile reads a file of at most this many bytes. Its error names no path.
func ReadFile(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, unreadable(err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return nil, unreadable(err)
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("is larger than %d bytes, the most that is read", most)
	}
	return data, nil
}

func unreadable(err error) error {
	if cause, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("cannot be read: %w", cause.Err)
	}
	return fmt.Errorf("cannot be read: %w", err)
}
