package cri

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"podd/runtime"
)

// pullMessages are error messages of containerd 2.4, containerd 1.6 and CRI-O.
var pullMessages = []struct {
	name, image, say string
	want             pullFailure
}{
	{
		"2.4 missing", "reg.example/web:2",
		`failed to pull and unpack image "reg.example/web:2": failed to resolve image: reg.example/web:2: not found`,
		pullFailure{reasonPull, 404, false, "404 from reg.example: no such image"},
	},
	{
		"1.6 missing", "reg.example/web:2",
		`failed to pull and unpack image "reg.example/web:2": failed to resolve reference "reg.example/web:2": reg.example/web:2: not found`,
		pullFailure{reasonPull, 404, false, "404 from reg.example: no such image"},
	},
	{
		"CRI-O missing", "reg.example/web:2",
		"initializing source docker://reg.example/web:2: reading manifest 2 in reg.example/web: manifest unknown",
		pullFailure{reasonPull, 404, false, "404 from reg.example: no such image"},
	},
	{
		"CRI-O 1.36 missing", "reg.example/web:2",
		"unable to pull image or OCI artifact: pull image err: initializing source docker://reg.example/web:2: reading manifest 2 in reg.example/web: manifest unknown; " +
			"artifact err: image reference: get manifest from ref: create image source: reading manifest 2 in reg.example/web: manifest unknown",
		pullFailure{reasonPull, 404, false, "404 from reg.example: no such image"},
	},
	{
		"CRI-O 1.36, anything", "reg.example/web:2",
		"unable to pull image or OCI artifact: pull image err: initializing source docker://reg.example/web:2: reading manifest 2 in reg.example/web: manifest is a teapot; " +
			"artifact err: image reference: get manifest from ref: create image source: reading manifest 2 in reg.example/web: manifest is a teapot",
		pullFailure{reasonPull, 0, false, "manifest is a teapot"},
	},
	{
		"2.4 lost blob", "reg.example/web:2",
		`failed to pull and unpack image "reg.example/web:2": blob sha256:79371f7e07d7 expected at /var/lib/containerd/blobs/sha256/79371f7e07d7: blob not found: not found`,
		pullFailure{reasonPull, 0, false, "the runtime has lost a part of the stored image (blob sha256:79371f7e07d7 expected at /var/lib/containerd/blobs/sha256/79371f7e07d7: blob not found: not found) and cannot pull it again; " +
			"remove the image with all its names from the runtime (containerd: ctr --namespace k8s.io images rm --sync)"},
	},
	{
		"2.4 truncated config", "reg.example/web:2",
		`failed to pull and unpack image "reg.example/web:2": unmarshal image config: unexpected end of JSON input`,
		pullFailure{reasonPull, 0, false, "the runtime has lost a part of the stored image (unmarshal image config: unexpected end of JSON input) and cannot pull it again; " +
			"remove the image with all its names from the runtime (containerd: ctr --namespace k8s.io images rm --sync)"},
	},
	{
		"2.4 401", "reg.example/web:2",
		`failed to pull and unpack image "reg.example/web:2": failed to resolve image: unexpected status from HEAD request to https://reg.example/v2/web/manifests/2: 401 Unauthorized`,
		pullFailure{reasonPull, 401, false, "401 from reg.example without credentials: the image does not exist, or credentials are required"},
	},
	{
		"2.4 basic", "reg.example/web:2",
		`failed to pull and unpack image "reg.example/web:2": failed to resolve image: pull access denied, repository does not exist or may require authorization: authorization failed: no basic auth credentials`,
		pullFailure{reasonPull, 401, false, "401 from reg.example without credentials: the image does not exist, or credentials are required"},
	},
	{
		"1.6 401", "reg.example/web:2",
		`failed to pull and unpack image "reg.example/web:2": failed to resolve reference "reg.example/web:2": pulling from host reg.example failed with status code [manifests 2]: 401 Unauthorized`,
		pullFailure{reasonPull, 401, false, "401 from reg.example without credentials: the image does not exist, or credentials are required"},
	},
	{
		"1.6 scope", "private/web",
		`failed to pull and unpack image "docker.io/private/web:latest": failed to resolve reference "docker.io/private/web:latest": pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed`,
		pullFailure{reasonPull, 401, false, "401 from docker.io without credentials: the image does not exist, or credentials are required"},
	},
	{
		"CRI-O 401", "web",
		"initializing source docker://docker.io/library/web: reading manifest latest in docker.io/library/web: errors:\ndenied: requested access to the resource is denied\nunauthorized: authentication required",
		pullFailure{reasonPull, 401, false, "401 from docker.io without credentials: the image does not exist, or credentials are required"},
	},
	{
		"403 with more", "reg.example/web:2",
		"failed to pull and unpack image \"reg.example/web:2\": failed to resolve image: unexpected status from HEAD request to https://reg.example/v2/web/manifests/2: 403 Forbidden\nunknown: Forbidden",
		pullFailure{reasonPull, 403, false, "403 from reg.example: these credentials do not permit the pull"},
	},
	{
		"CRI-O 403", "reg.example/web:2", "reading manifest 2 in reg.example/web: denied: requested access to the resource is denied",
		pullFailure{reasonPull, 403, false, "403 from reg.example: these credentials do not permit the pull"},
	},
	{
		"1.6 429 of a blob", "index.docker.io/x/y@sha256:" + id64,
		`failed to pull and unpack image "docker.io/x/y@sha256:` + id64 + `": failed to copy: httpReadSeeker: failed open: unexpected status code https://registry-1.docker.io/v2/x/y/manifests/sha256:` + id64 + `: 429 Too Many Requests - Server message: toomanyrequests: You have reached your pull rate limit.`,
		pullFailure{reasonPull, 429, false, "429 from index.docker.io: too many requests"},
	},
	{
		"CRI-O 429", "x/y", "reading manifest latest in docker.io/x/y: toomanyrequests: You have reached your pull rate limit",
		pullFailure{reasonPull, 429, false, "429 from docker.io: too many requests"},
	},
	{
		"503", "reg.example/web:2", "received unexpected HTTP status: 503 Service Unavailable",
		pullFailure{reasonPull, 503, false, "503 from reg.example: Service Unavailable"},
	},
	{
		"530", "reg.example/web:2", "error pulling image configuration: received unexpected HTTP status: 530",
		pullFailure{reasonPull, 530, false, "530 from reg.example:"},
	},
	{
		"no such host", "reg.example/web:2",
		`failed to pull and unpack image "reg.example/web:2": failed to resolve image: failed to do request: Head "https://reg.example/v2/web/manifests/2": dial tcp: lookup reg.example on 10.0.0.53:53: no such host`,
		pullFailure{reasonPull, 0, true, "reg.example cannot be reached (no such host)"},
	},
	{
		"CRI-O refused", "reg.example:5000/web:2",
		`initializing source docker://reg.example:5000/web:2: pinging container registry reg.example:5000: Get "https://reg.example:5000/v2/": dial tcp 10.0.0.9:5000: connect: connection refused`,
		pullFailure{reasonPull, 0, true, "reg.example:5000 cannot be reached (connection refused)"},
	},
	{
		"proxy's name server", "x", `error pinging docker registry registry-1.docker.io: Get "https://registry-1.docker.io/v2/": proxyconnect tcp: dial tcp: lookup http: Temporary failure in name resolution`,
		pullFailure{reasonPull, 0, true, "docker.io cannot be reached (temporary failure in name resolution)"},
	},
	{
		"timeout", "x", `pinging docker registry returned: Get http://registry-1.docker.io/v2/: dial tcp 34.199.40.84:80: i/o timeout`,
		pullFailure{reasonPull, 0, true, "docker.io cannot be reached (timeout)"},
	},
	{
		"only reported by the runtime", "x", "RegistryUnavailable: pulling image: something of its own",
		pullFailure{reasonUnavailable, 0, true, "docker.io cannot be reached (as reported by the runtime)"},
	},
	{
		"plain HTTP", "10.0.0.9:5000/x:1",
		`failed to pull and unpack image "10.0.0.9:5000/x:1": failed to resolve image: failed to do request: Head "https://10.0.0.9:5000/v2/x/manifests/1": http: server gave HTTP response to HTTPS client`,
		pullFailure{reasonPull, 0, false, "10.0.0.9:5000 responds with HTTP instead of HTTPS; allow HTTP in the runtime's configuration of the registry"},
	},
	{
		"certificate", "reg.example/x:1",
		`failed to pull and unpack image "reg.example/x:1": failed to resolve image: failed to do request: Head "https://reg.example/v2/x/manifests/1": tls: failed to verify certificate: x509: certificate signed by unknown authority`,
		pullFailure{reasonPull, 0, false, "the certificate of reg.example was rejected (certificate signed by unknown authority)"},
	},
	{
		"bad name", "a b", `failed to parse image reference "a b": invalid reference format`,
		pullFailure{reasonName, 0, false, "not a valid image name"},
	},
	{
		"no platform", "reg.example/x:1", `failed to pull and unpack image "reg.example/x:1": no match for platform in manifest: not found`,
		pullFailure{reasonPull, 0, false, "reg.example has no variant of the image for the platform of this node"},
	},
	{
		"CRI-O signature", "reg.example/x:1", `SignatureValidationFailed: Source image rejected: A signature was required, but no signature exists`,
		pullFailure{reasonSignature, 0, false, "Source image rejected: A signature was required, but no signature exists"},
	},
	{
		"credentials quoted", "reg.example/x:1",
		`failed to pull and unpack image "reg.example/x:1": failed to resolve image: failed to get credentials for "reg.example": invalid decoded auth: "hunter2"`,
		pullFailure{reasonPull, 0, false, "the credentials for reg.example do not have the form user:password"},
	},
	{
		"disk full", "reg.example/x:1",
		`failed to pull and unpack image "reg.example/x:1": failed to extract layer sha256:1: write /var/lib/x: no space left on device: unknown`,
		pullFailure{reasonPull, 0, false, "failed to extract layer sha256:1: write /var/lib/x: no space left on device"},
	},
}

func TestWhyPull(t *testing.T) {
	for _, test := range pullMessages {
		t.Run(test.name, func(t *testing.T) {
			if got := parsePullError(test.image, test.say, true); got != test.want {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

func TestPullError(t *testing.T) {
	c := &Client{endpoint: "/run/x.sock"}
	err := c.pullError(t.Context(), "reg.example/web:2", false, status.Error(codes.Unknown, "unexpected status: 401 Unauthorized"))
	var pull *runtime.PullError
	if !errors.As(err, &pull) || pull.Image != "reg.example/web:2" || pull.Registry != "reg.example" || pull.Status != 401 {
		t.Fatalf("pull with status 401: got error %#v, want a PullError of reg.example with this status", err)
	}
	if want := "pulling reg.example/web:2: 401 from reg.example: the image does not exist, or the registry rejected the credentials"; err.Error() != want {
		t.Errorf("got error %q, want %q", err, want)
	}
	// An error of the connection to the runtime must not become an error of the registry.
	err = c.pullError(t.Context(), "x", true, status.Error(codes.Unavailable, "error reading from server: EOF"))
	if errors.As(err, &pull) || !errors.Is(err, runtime.ErrUnavailable) {
		t.Errorf("unavailable runtime: got error %#v, want ErrUnavailable and no PullError", err)
	}
	// A timeout of the registry can have the same gRPC code, but must become an error of the registry.
	err = c.pullError(t.Context(), "x", true, status.Error(codes.Unavailable, `failed to pull and unpack image "x": i/o timeout`))
	if !errors.As(err, &pull) || !pull.Unreachable || errors.Is(err, runtime.ErrUnavailable) {
		t.Errorf("timeout of the registry: got error %#v, want an unreachable PullError", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = c.pullError(ctx, "x", true, status.Error(codes.Canceled, "context canceled"))
	if errors.As(err, &pull) || !errors.Is(err, context.Canceled) {
		t.Errorf("canceled pull: got error %#v, want Canceled and no PullError", err)
	}
}

func TestSandboxImage(t *testing.T) {
	c := &Client{endpoint: "/run/x.sock"}
	for _, say := range []string{
		`failed to pull image "reg.example/pause:3": failed to pull and unpack image "reg.example/pause:3": failed to resolve image: failed to do request: Head "https://reg.example/v2/pause/manifests/3": dial tcp: lookup reg.example: no such host`,
		`failed to get sandbox image "reg.example/pause:3": failed to pull image "reg.example/pause:3": failed to pull and unpack image "reg.example/pause:3": failed to resolve reference "reg.example/pause:3": failed to do request: Head "https://reg.example/v2/pause/manifests/3": dial tcp: lookup reg.example: no such host`,
	} {
		want := "the runtime's sandbox image reg.example/pause:3 is not present: reg.example cannot be reached (no such host); import the image into the runtime, or set another sandbox image in the runtime's configuration"
		if got := explainSandboxImage(c.convertError(t.Context(), status.Error(codes.Unknown, say))); got.Error() != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
	other := c.convertError(t.Context(), status.Error(codes.Unknown, "failed to setup network"))
	if got := explainSandboxImage(other); got != other {
		t.Errorf("another error: got %v, want %v", got, other)
	}
}
