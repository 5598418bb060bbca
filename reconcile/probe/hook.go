package probe

import (
	"context"
	"errors"
	"net/http"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// hookAgent is what servers and their logs know lifecycle hooks by.
const hookAgent = "kube-lifecycle/1.34"

// Call makes an httpGet hook once. Any answer will do, whatever its status: the
// container has heard. It ends with an error soon after ctx is done, and after
// t.Timeout, where that is not zero.
func Call(ctx context.Context, handler *v1.LifecycleHandler, t Target) error {
	if handler.HTTPGet == nil {
		return errors.New("it has no handler that podd knows")
	}
	err := t.call(ctx, handler.HTTPGet)
	if gone := ctx.Err(); gone != nil {
		return gone
	}
	return err
}

func (t Target) call(ctx context.Context, a *v1.HTTPGetAction) error {
	req, err := t.request(ctx, a, hookAgent)
	if err != nil {
		return err
	}
	client := t.client()
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	if speaksHTTP(err) {
		// Once every hook was asked in plain HTTP, and some servers rely on it.
		// What is for a secret channel does not go over an open one.
		again := req.Clone(ctx)
		again.URL.Scheme = "http"
		again.Header.Del("Authorization")
		res, err = client.Do(again)
	}
	if err != nil {
		return errors.New(Line(requestError(err)))
	}
	return res.Body.Close()
}

// speaksHTTP says that a server was asked for TLS and does not know any.
func speaksHTTP(err error) bool {
	return err != nil && strings.Contains(err.Error(), http.ErrSchemeMismatch.Error())
}
