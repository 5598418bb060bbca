package probe

import (
	"context"
	"errors"
	"net/http"
	"strings"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/manifest/wording"
)

// hookUserAgent is the user agent of the kubelet's lifecycle hooks.
var hookUserAgent = "kube-lifecycle/" + manifest.KubernetesRelease()

// CallHTTPHook runs an httpGet hook once. Every HTTP response is a success, regardless of its
// status. CallHTTPHook returns an error if there is no response before ctx is done or t.Timeout
// expires. If the hook uses HTTPS but only a request over HTTP succeeded, plainHost is the host and
// port of the server. Otherwise it is "".
func CallHTTPHook(ctx context.Context, handler *v1.LifecycleHandler, t Target) (plainHost string, err error) {
	if handler.HTTPGet == nil {
		return "", errors.New("the hook has no supported handler")
	}
	plainHost, err = t.callHTTP(ctx, handler.HTTPGet)
	if ctxErr := ctx.Err(); ctxErr != nil {
		return "", ctxErr
	}
	return plainHost, err
}

func (t Target) callHTTP(ctx context.Context, a *v1.HTTPGetAction) (plainHost string, err error) {
	req, err := t.newRequest(ctx, a, hookUserAgent)
	if err != nil {
		return "", err
	}
	client := t.newClient()
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	if isPlainHTTPError(err) {
		// Like the kubelet, fall back to HTTP, because earlier kubelets ignored the scheme
		// of hooks and some servers rely on that. The Authorization header is removed
		// because it must not be sent unencrypted.
		plainReq := req.Clone(ctx)
		plainReq.URL.Scheme = "http"
		plainReq.Header.Del("Authorization")
		plainHost = plainReq.URL.Host
		res, err = client.Do(plainReq)
	}
	if err != nil {
		return "", errors.New(wording.FirstLine(requestErrorText(err)))
	}
	return plainHost, res.Body.Close()
}

// isPlainHTTPError reports whether err is the error of an HTTPS request to a server that
// responded in plain HTTP.
func isPlainHTTPError(err error) bool {
	return err != nil && strings.Contains(err.Error(), http.ErrSchemeMismatch.Error())
}
