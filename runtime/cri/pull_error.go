package cri

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"podd/manifest/lazyregexp"
	"podd/runtime"
)

// Reasons why a container waits after a failed pull. The kubelet uses the same reasons.
const (
	reasonPull        = "ErrImagePull"
	reasonName        = "InvalidImageName"
	reasonUnavailable = "RegistryUnavailable"
	reasonSignature   = "SignatureValidationFailed"
)

// pullError converts the error of a PullImage call to a *runtime.PullError. Errors of the
// connection to the runtime are not converted. anonymous reports whether the pull was made without
// credentials.
func (c *Client) pullError(ctx context.Context, image string, anonymous bool, err error) error {
	s, _ := status.FromError(err)
	isConnectionError := s.Code() == codes.Unavailable && !isRegistryError(s.Message())
	if ctx.Err() != nil || isPastDeadline(ctx, s.Code()) || isConnectionError || s.Code() == codes.Unimplemented {
		return c.convertError(ctx, err)
	}
	failure := parsePullError(image, s.Message(), anonymous)
	return &runtime.PullError{
		Image:       image,
		Registry:    registryOf(image),
		Reason:      failure.reason,
		Status:      failure.status,
		Unreachable: failure.unreachable,
		Err:         &callError{text: "pulling " + makePrintable(image) + ": " + failure.text},
	}
}

// isRegistryError reports whether the text of an Unavailable error comes from the pull and
// not from the connection to the runtime.
func isRegistryError(text string) bool {
	return strings.Contains(text, "pull") || strings.Contains(text, "registry") || strings.Contains(text, "://")
}

// A pullFailure is the parsed error of a failed pull.
type pullFailure struct {
	reason      string
	status      int // HTTP status of the registry; 0 if unknown
	unreachable bool
	text        string
}

// parsePullError parses the message of containerd or CRI-O. The order of the cases matters: the
// first case that matches determines the result.
func parsePullError(image, message string, anonymous bool) pullFailure {
	// If a pull fails, CRI-O tries to pull an OCI artifact with the same name and appends the error
	// of this second attempt. It is omitted, because it has the same cause.
	message, _, _ = strings.Cut(message, "; artifact err: ")
	registry := registryOf(image)
	f := pullFailure{reason: reasonPull, text: trimPullPrefixes(makeReadable(message))}
	switch code := httpStatus(message); {
	// The message is replaced, because containerd quotes credentials that it cannot parse.
	case containsAny(message, "invalid decoded auth", "illegal base64"):
		f.text = "the credentials for " + registry + " do not have the form user:password"
	case isInvalidName(message):
		f.reason, f.text = reasonName, "not a valid image name"
	case containsAny(message, reasonSignature, "Source image rejected", "image verifier"):
		f.reason = reasonSignature
	case containsAny(message, "no match for platform", "no image found in manifest list", "no image found in image index"):
		f.text = registry + " has no variant of the image for the platform of this node"
	case strings.Contains(message, "HTTP response to HTTPS client"):
		f.text = registry + " responds with HTTP instead of HTTPS; allow HTTP in the runtime's configuration of the registry"
	case containsAny(message, "x509:", "tls: "):
		f.text = "the certificate of " + registry + " was rejected (" + textAfter(f.text, "x509: ", "tls: ") + ")"
	case isLostContentText(message):
		f.text = "the runtime has lost a part of the stored image (" + f.text + ") and cannot pull it again; remove the image with all its names from the runtime (containerd: ctr --namespace k8s.io images rm --sync)"
	case code != 0:
		f.status, f.text = code, statusText(code, registry, anonymous)
	case unreachableCause(message) != "":
		f.unreachable, f.text = true, registry+" cannot be reached ("+unreachableCause(message)+")"
	}
	if strings.HasPrefix(message, reasonUnavailable) {
		f.reason = reasonUnavailable
	}
	return f
}

// isLostContentText reports whether message is the error of containerd for an image whose manifest or
// config is recorded in its database but missing or truncated on the disk. containerd does not list
// such an image after a restart, so CRI cannot remove it. As long as the database contains the image,
// containerd does not pull the missing part again.
func isLostContentText(message string) bool {
	return strings.Contains(message, " expected at ") && strings.HasSuffix(message, ": not found") ||
		containsAny(message, "unmarshal image config: unexpected end of JSON input", "children: invalid desc ")
}

// isInvalidName reports whether message is the error of a runtime for an invalid image
// name.
func isInvalidName(message string) bool {
	return containsAny(message, "failed to parse image reference", "invalid reference format", "invalid image reference", "couldn't parse image")
}

// statusText explains the HTTP status of a registry for a user.
func statusText(code int, registry string, anonymous bool) string {
	switch code {
	case http.StatusUnauthorized:
		if anonymous {
			return "401 from " + registry + " without credentials: the image does not exist, or credentials are required"
		}
		return "401 from " + registry + ": the image does not exist, or the registry rejected the credentials"
	case http.StatusForbidden:
		return "403 from " + registry + ": these credentials do not permit the pull"
	case http.StatusNotFound:
		return "404 from " + registry + ": no such image"
	case http.StatusTooManyRequests:
		return "429 from " + registry + ": too many requests"
	}
	return strings.TrimSpace(strconv.Itoa(code) + " from " + registry + ": " + http.StatusText(code))
}

var (
	statusWithTextPattern    = lazyregexp.New(`\b([45]\d\d) ([A-Z][A-Za-z]+)`)
	statusWithoutTextPattern = lazyregexp.New(`(?:unexpected|invalid) (?:HTTP )?status(?: code)?\b[^"]*?:? ([45]\d\d)\b`)
)

// httpStatus returns the HTTP status of the registry's response, or 0 if message contains
// none. It searches for the number first, and then for phrases of the registry API.
func httpStatus(message string) int {
	for _, m := range statusWithTextPattern().FindAllStringSubmatch(message, -1) {
		code, _ := strconv.Atoi(m[1])
		if strings.HasPrefix(http.StatusText(code), m[2]) {
			return code
		}
	}
	if m := statusWithoutTextPattern().FindStringSubmatch(message); m != nil {
		code, _ := strconv.Atoi(m[1])
		return code
	}
	for _, w := range statusPhrases {
		if strings.Contains(message, w.phrase) {
			return w.code
		}
	}
	if strings.HasSuffix(message, ": not found") {
		return http.StatusNotFound
	}
	return 0
}

// statusPhrases contains phrases in the order in which they are searched. The phrases for 401 come
// before those for 403, because a registry that denies access and mentions authentication requires
// credentials.
var statusPhrases = []struct {
	phrase string
	code   int
}{
	{"toomanyrequests", http.StatusTooManyRequests},
	{"insufficient_scope", http.StatusUnauthorized},
	{"pull access denied", http.StatusUnauthorized},
	{"no basic auth credentials", http.StatusUnauthorized},
	{"authorization failed", http.StatusUnauthorized},
	{"authentication required", http.StatusUnauthorized},
	{"invalid username/password", http.StatusUnauthorized},
	{"unauthorized:", http.StatusUnauthorized},
	{"access to the resource is denied", http.StatusForbidden},
	{"denied:", http.StatusForbidden},
	{"manifest unknown", http.StatusNotFound},
	{"name unknown", http.StatusNotFound},
	{"repository name not known", http.StatusNotFound},
}

// unreachableCause returns the reason why no registry responded, or "" if a registry responded.
func unreachableCause(message string) string {
	for _, w := range unreachablePhrases {
		if strings.Contains(message, w.phrase) {
			return w.cause
		}
	}
	return ""
}

var unreachablePhrases = []struct{ phrase, cause string }{
	{"no such host", "no such host"},
	{"name resolution", "temporary failure in name resolution"},
	{"server misbehaving", "the DNS server failed"},
	{"connection refused", "connection refused"},
	{"no route to host", "no route to host"},
	{"network is unreachable", "network is unreachable"},
	{"TLS handshake timeout", "timeout"},
	{"i/o timeout", "timeout"},
	{"Client.Timeout exceeded", "timeout"},
	{"timeout awaiting", "timeout"},
	{"deadline exceeded", "timeout"},
	{"connection reset by peer", "connection reset"},
	{"unexpected EOF", "connection closed"},
	{": EOF", "connection closed"},
	{reasonUnavailable, "as reported by the runtime"},
}
