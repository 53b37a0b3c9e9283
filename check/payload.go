package check

import (
	"bytes"
	"encoding/hex"
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// payloadBytes gives what a payload stands for: text is hexadecimal.
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

// segments gives the parts of an expected answer, the empty ones left out.
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

// contains tells whether all segments are in data, in this order, with
// anything between.
func contains(data []byte, segments [][]byte) bool {
	for _, segment := range segments {
		at := bytes.Index(data, segment)
		if at < 0 {
			return false
		}
		data = data[at+len(segment):]
	}
	return true
}
