package controlplane

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// A Client sends requests to an API server as one user.
type Client struct {
	URL  string // URL of the API server
	HTTP *http.Client
}

// NewClient returns a client that authenticates as the user of a kubeconfig.
func NewClient(kubeconfig string) (Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return Client{}, err
	}
	trust, err := rest.TLSConfigFor(config)
	if err != nil {
		return Client{}, fmt.Errorf("reading the certificates and keys of the kubeconfig %s: %w", kubeconfig, err)
	}
	transport := &http.Transport{TLSClientConfig: trust} // a new transport, because client-go would share its transport with other clients
	return Client{config.Host, &http.Client{Timeout: time.Minute, Transport: transport}}, nil
}

// ErrNotFound is the error for an object that does not exist.
var ErrNotFound = errors.New("not found")

// Do sends a request. The parameter body is sent as JSON, and the JSON response is decoded into
// result. Both may be nil. If the object does not exist, the error is ErrNotFound.
func (c Client) Do(method, path string, body, result any) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	q, err := http.NewRequest(method, c.URL+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		q.Header.Set("Content-Type", "application/strategic-merge-patch+json")
	}
	r, err := c.HTTP.Do(q)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	response, err := io.ReadAll(r.Body)
	switch {
	case err != nil:
		return err
	case r.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%s: %w", path, ErrNotFound)
	case r.StatusCode >= 300:
		return fmt.Errorf("%s %s: %s: %s", method, path, r.Status, response)
	case result == nil:
		return nil
	}
	return json.Unmarshal(response, result)
}
