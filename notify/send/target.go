package send

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"hdsd/notify"
)

// Limits of one request.
const (
	attemptTimeout = 10 * time.Second
	maxAnswer      = 1 << 10 // bytes of an answer that are shown
	maxBatch       = 100     // notices
)

// Types of targets.
const (
	Alertmanager = "alertmanager"
	Webhook      = "webhook"
)

// Target is where a receiver is.
type Target struct {
	Type       string
	URL        string // of an Alertmanager: its base
	SecretFile string // of a webhook; empty: requests are not signed
}

// refusal is the answer to a request that is wrong in itself, so that it would be the same
// the next time.
type refusal struct{ error }

// sender makes requests.
type sender struct {
	client     *http.Client
	node       string // hdsd's name
	readSecret func(path string) ([]byte, error)
}

func newSender(o *Options, over http.RoundTripper) *sender {
	return &sender{node: o.Node, readSecret: o.ReadSecret, client: &http.Client{
		Transport: over, Timeout: attemptTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// send sends notices and returns what was answered.
func (s *sender) send(ctx context.Context, to *Target, notices []notify.Notice, now time.Time) (answer string, err error) {
	address, body := to.URL, any(nil)
	if to.Type == Alertmanager {
		address, body = strings.TrimSuffix(to.URL, "/")+"/api/v2/alerts", s.alerts(notices)
	} else {
		body = s.delivery(notices, now)
	}
	data, err := json.Marshal(body)
	if err != nil {
		return "", refusal{err}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(data))
	if err != nil {
		return "", refusal{errors.New("the URL cannot be used")} // err has the URL, which may have a secret
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "hdsd")
	if to.SecretFile != "" {
		signature, err := sign(s.readSecret, to.SecretFile, data)
		if err != nil {
			return "", err
		}
		request.Header.Set("X-Hdsd-Signature", signature)
	}
	return s.do(request)
}

// do makes a request. Its error does not have the URL.
func (s *sender) do(request *http.Request) (answer string, err error) {
	response, err := s.client.Do(request)
	if err != nil {
		if in, ok := errors.AsType[*url.Error](err); ok {
			err = in.Err
		}
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("no answer within %s", attemptTimeout)
		}
		return "", err
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer)) // whatever it says, the status counts
	answer = strings.TrimSpace(response.Status + " " + strings.ToValidUTF8(string(bytes.TrimSpace(text)), "?"))
	switch code := response.StatusCode; {
	case code/100 == 2:
		return answer, nil
	case code/100 == 3:
		return answer, fmt.Errorf("it redirects (%s), which hdsd does not follow: configure where it leads", response.Status)
	case code == http.StatusBadRequest || code == http.StatusRequestEntityTooLarge || code == http.StatusUnprocessableEntity:
		return answer, refusal{errors.New("it answers " + answer)}
	}
	return answer, errors.New("it answers " + answer)
}

// sign returns the signature of a body by the secret in a file, as it is now.
func sign(read func(string) ([]byte, error), file string, body []byte) (string, error) {
	secret, err := read(file)
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil)), nil
}
