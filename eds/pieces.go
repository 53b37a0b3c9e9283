package eds

import (
	"errors"
	"io"
	"slices"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"hdsd/envoy/fields"
	"hdsd/internal/rest"
)

// Pieces have about pieceBytes. They are composed of parts of stepBytes, so that the size of
// grpc's buffers does not matter.
const (
	pieceBytes = 64 << 10
	stepBytes  = 16 << 10
)

// eachPiece cuts an encoded message between its fields, and visits one piece after the other.
// They share memory. A piece has more than pieceBytes if a field has, which may have up to
// otherBytes. The last one may be a rest that cannot be cut: visit finds that it is invalid.
func eachPiece(data mem.BufferSlice, visit func(piece []byte) error) error {
	piece := make([]byte, 0, pieceBytes+stepBytes)
	for _, buffer := range data {
		for part := range slices.Chunk(buffer.ReadOnlyData(), stepBytes) {
			piece = append(piece, part...)
			if len(piece) < pieceBytes {
				continue
			}
			whole, err := wholeFields(piece)
			if err != nil {
				return visit(piece)
			}
			if whole > 0 { // else there is nothing to visit, and much to move
				if err := visit(piece[:whole]); err != nil {
					return err
				}
				piece = append(piece[:0], piece[whole:]...)
			}
			size := max(announced(piece), uint64(len(piece)))
			if size > otherBytes {
				return rest.TooLarge("a field of a request may have up to %d bytes: use shorter names, or make the node smaller", otherBytes)
			}
			piece = slices.Grow(piece, min(int(size), data.Len())+stepBytes-len(piece))
		}
	}
	return visit(piece)
}

// wholeFields returns the size of the complete fields at the beginning.
func wholeFields(b []byte) (bytes int, err error) {
	for bytes < len(b) {
		f, err := fields.Next(b[bytes:])
		if errors.Is(err, io.ErrUnexpectedEOF) {
			break
		} else if err != nil {
			return 0, err
		}
		bytes += len(f.Raw)
	}
	return bytes, nil
}

// announced returns the announced size of b's first field.
func announced(b []byte) uint64 {
	_, kind, head := protowire.ConsumeTag(b)
	if head < 0 || kind != protowire.BytesType {
		return 0
	}
	size, _ := protowire.ConsumeVarint(b[head:]) // zero while it is incomplete
	return size
}
