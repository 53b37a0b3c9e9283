package wire

import (
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// tooLarge ends the reason why a message is not decoded.
const tooLarge = ": make it smaller"

// Refusal sets the right code of a stream's error. If the codec refuses a message because of its
// size, grpc keeps only the text, and calls it an error of the server. The prefix is grpc's.
func Refusal(err error) error {
	const prefix = "grpc: failed to unmarshal the received message: "
	st, ok := status.FromError(err)
	if !ok || st.Code() != codes.Internal || !strings.HasPrefix(st.Message(), prefix) || !strings.HasSuffix(st.Message(), tooLarge) {
		return err
	}
	return status.Error(codes.ResourceExhausted, strings.TrimPrefix(st.Message(), prefix))
}
