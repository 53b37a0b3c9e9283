package wire

import (
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// tooLarge ends the reason why a message is not decoded.
const tooLarge = ": make it smaller"

// Refusal gives an error of a stream the code that it should have. Where the codec
// refuses a message because of its size, grpc keeps only the text, and calls it an error
// of the server. The prefix is grpc's.
func Refusal(err error) error {
	const prefix = "grpc: failed to unmarshal the received message: "
	said, ok := status.FromError(err)
	if !ok || said.Code() != codes.Internal || !strings.HasPrefix(said.Message(), prefix) || !strings.HasSuffix(said.Message(), tooLarge) {
		return err
	}
	return status.Error(codes.ResourceExhausted, strings.TrimPrefix(said.Message(), prefix))
}
