package eds

import (
	"errors"
	"io"
	"slices"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"hdsd/internal/rest"
)

// Pieces have about pieceBytes. They are put together from parts of stepBytes, so that the
// size of grpc's buffers does not matter.
const (
	pieceBytes = 64 << 10
	stepBytes  = 16 << 10
)

// eachPiece cuts an encoded message between its fields, and visits one piece after the
// other. They share memory. A piece has more than pieceBytes if a field has, which may have
// up to otherBytes. The last one is what cannot be cut: visit finds that it is invalid.
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

// wholeFields is how many bytes the fields have that are there to the end.
func wholeFields(b []byte) (bytes int, err error) {
	for bytes < len(b) {
		_, _, size := protowire.ConsumeField(b[bytes:])
		if err := protowire.ParseError(size); size < 0 && !errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, err
		}
		if size < 0 {
			break
		}
		bytes += size
	}
	return bytes, nil
}

// announced is how many bytes the field says to have that b begins with.
func announced(b []byte) uint64 {
	_, kind, head := protowire.ConsumeTag(b)
	if head < 0 || kind != protowire.BytesType {
		return 0
	}
	size, _ := protowire.ConsumeVarint(b[head:]) // zero as long as it is not there
	return size
}
