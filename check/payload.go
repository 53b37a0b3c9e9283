package check

import (
	"bytes"
	"encoding/hex"
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// payloadBytes returns the bytes of a payload: text is hexadecimal.
func payloadBytes(p *corev3.HealthCheck_Payload) ([]byte, error) {
	text, isText := p.GetPayload().(*corev3.HealthCheck_Payload_Text)
	if !isText {
		return p.GetBinary(), nil
	}
	decoded, err := hex.DecodeString(text.Text)
	if err != nil || len(decoded) == 0 {
		return nil, fmt.Errorf("text %q is not hexadecimal", text.Text)
	}
	return decoded, nil
}

// segments returns the parts of an expected response, without empty ones.
func segments(payloads []*corev3.HealthCheck_Payload) ([][]byte, error) {
	var list [][]byte
	for i, p := range payloads {
		segment, err := payloadBytes(p)
		if err != nil {
			return nil, fmt.Errorf("receive[%d]: %w", i, err)
		}
		if len(segment) > 0 {
			list = append(list, segment)
		}
	}
	return list, nil
}

// contains reports whether data has all segments in this order, with anything between.
func contains(data []byte, segments [][]byte) bool {
	for _, segment := range segments {
		index := bytes.Index(data, segment)
		if index < 0 {
			return false
		}
		data = data[index+len(segment):]
	}
	return true
}
