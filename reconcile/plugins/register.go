package plugins

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// callTimeout is the timeout of calls to the registration service of a plugin.
const callTimeout = 10 * time.Second

// Limits of the description that a plugin returns from GetInfo. maxName, maxPath and
// maxMessage are in bytes.
const (
	maxName     = 253
	maxPath     = 4096
	maxVersions = 16
	maxMessage  = 64 << 10
)

// Dial returns a client connection to a plugin's socket. The connection is established by the first
// call.
func Dial(socket string, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+socket, append([]grpc.DialOption{
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"), grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(), grpc.WithIdleTimeout(0),
		grpc.WithReadBufferSize(8 << 10), grpc.WithWriteBufferSize(8 << 10),
	}, opts...)...)
}

// register gets the description of the plugin at a socket, registers the plugin with the Handler of
// its type, and reports the result to the plugin. It returns an unsupportedTypeError if podd does
// not support the type of the plugin. This error is not reported to the plugin, because plugins
// exit after a failed registration and would be restarted endlessly.
func (w *Watcher) register(ctx context.Context, socket string) (Registration, error) {
	conn, err := Dial(socket, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	callCtx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	api := v1.NewRegistrationClient(conn)
	info, err := api.GetInfo(callCtx, &v1.InfoRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return nil, fmt.Errorf("calling GetInfo of the plugin: %w", PlainError(err))
	}
	kind := w.Handlers[info.GetType()]
	if kind == nil {
		return nil, w.newUnsupportedTypeError(info.GetType())
	}
	var r Registration
	p, err := newPlugin(info, socket)
	if err == nil {
		r, err = kind.Register(ctx, p)
	}
	result := &v1.RegistrationStatus{PluginRegistered: err == nil}
	if err != nil {
		result.Error = err.Error()
	}
	callCtx, cancel = context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if _, notifyErr := api.NotifyRegistrationStatus(callCtx, result); notifyErr != nil && err == nil {
		w.Log.Warn("reporting the registration to the plugin failed", "socket", socket, "err", PlainError(notifyErr))
	}
	return r, err
}

// newPlugin checks info, the description that the plugin at a socket reported, and converts it to
// a Plugin. If info has no endpoint, the endpoint is socket.
func newPlugin(info *v1.PluginInfo, socket string) (Plugin, error) {
	p := Plugin{Name: info.GetName(), Endpoint: info.GetEndpoint(), Versions: info.GetSupportedVersions()}
	if p.Endpoint == "" {
		p.Endpoint = socket
	}
	switch {
	case p.Name == "" || len(p.Name) > maxName:
		return p, fmt.Errorf("the name of the plugin has %d characters; it must have 1 to %d", len(p.Name), maxName)
	case !filepath.IsAbs(p.Endpoint) || len(p.Endpoint) > maxPath || strings.ContainsRune(p.Endpoint, 0):
		return p, errors.New("the endpoint of the plugin is not an absolute path")
	case len(p.Versions) > maxVersions:
		return p, fmt.Errorf("the plugin reports %d versions (limit %d)", len(p.Versions), maxVersions)
	}
	p.Endpoint = filepath.Clean(p.Endpoint)
	return p, nil
}

// maxTextLength is the maximum length in bytes of a plugin's text in messages.
const maxTextLength = 512

// PlainError returns an error with the message of err, the gRPC error of a plugin, but without the
// gRPC code. It truncates the message like TruncateText.
func PlainError(err error) error { return errors.New(TruncateText(status.Convert(err).Message())) }

// TruncateText returns text from a plugin as valid UTF-8, truncated to 512 bytes for messages.
func TruncateText(text string) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) > maxTextLength {
		text = strings.ToValidUTF8(text[:maxTextLength], "") + "…"
	}
	return text
}
