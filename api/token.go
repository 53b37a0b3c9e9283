package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
)

const questionBytes = 8 // bytes of a token that identify the query

// encodeToken makes the token that continues question after position.
func encodeToken(question string, position any) (string, error) {
	text, err := json.Marshal(position)
	if err != nil {
		return "", fmt.Errorf("encoding a page token: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(append(digest(question), text...)), nil
}

// decodeToken returns the position in a token of encodeToken for the same question.
func decodeToken(question, token string, position any) error {
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(raw) < questionBytes || !bytes.Equal(raw[:questionBytes], digest(question)) {
		return ErrBadToken
	}
	if json.Unmarshal(raw[questionBytes:], position) != nil {
		return ErrBadToken
	}
	return nil
}

func digest(question string) []byte {
	sum := sha256.Sum256([]byte(question))
	return sum[:questionBytes]
}
