package kubelet

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/munnerz/goautoneg"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"podd/server"
)

// component is the component name in the responses of /statusz and /flagz. podd uses the name of
// the kubelet.
const component = "kubelet"

// textHeader is the format of the first lines of a text response, as in the kubelet.
const textHeader = "\n" + component + " %s\nWarning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.\n"

// statuszResponse is the structured response of /statusz, in the kubelet's versions v1alpha1 and v1beta1 of
// the group config.k8s.io.
type statuszResponse struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	StartTime         metav1.Time `json:"startTime"`
	UptimeSeconds     int64       `json:"uptimeSeconds"`
	GoVersion         string      `json:"goVersion"`
	BinaryVersion     string      `json:"binaryVersion"`
	EmulationVersion  string      `json:"emulationVersion,omitempty"`
	Paths             []string    `json:"paths"`
}

// flagzResponse is the structured response of /flagz, in the kubelet's versions v1alpha1 and v1beta1 of the
// group config.k8s.io.
type flagzResponse struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Flags             map[string]string `json:"flags,omitempty"`
}

func (a *API) statusz(w http.ResponseWriter, r *http.Request) {
	s := statuszResponse{
		ObjectMeta: metav1.ObjectMeta{Name: component},
		StartTime:  metav1.NewTime(a.StartTime), UptimeSeconds: max(int64(time.Since(a.StartTime)/time.Second), 0),
		GoVersion: runtime.Version(), BinaryVersion: "podd " + a.State.View().Version, EmulationVersion: a.KubernetesRelease,
		Paths: a.readOnlyPaths(),
	}
	writePage(w, r, page{
		kind: "Statusz",
		text: func() string {
			uptime := s.UptimeSeconds
			return fmt.Sprintf("\nStarted: %s\nUp: %d hr %02d min %02d sec\nGo version: %s\nBinary version: %s\nEmulation version: %s\nPaths: %s\n",
				a.StartTime.Format(time.UnixDate), uptime/3600, uptime/60%60, uptime%60, s.GoVersion, s.BinaryVersion, s.EmulationVersion, strings.Join(s.Paths, " "))
		},
		object: func(kind metav1.TypeMeta) any {
			s.TypeMeta = kind
			return s
		},
	})
}

// readOnlyPaths returns the first segments of the paths that show podd's state and the host's logs.
func (a *API) readOnlyPaths() []string {
	paths := []string{"/configz", "/flagz", "/healthz", "/livez", "/metrics", "/pods", "/readyz", "/runningpods", "/spec", "/stats", "/statusz"}
	if a.ProfilingEnabled {
		paths = append(paths, "/debug")
	}
	if a.SystemLogs != nil {
		paths = append(paths, "/logs")
	}
	slices.Sort(paths)
	return paths
}

func (a *API) flagz(w http.ResponseWriter, r *http.Request) {
	writePage(w, r, page{
		kind: "Flagz",
		text: func() string {
			var b strings.Builder
			flags := a.Flags()
			for _, name := range slices.Sorted(maps.Keys(flags)) {
				fmt.Fprintf(&b, "%s=%s\n", name, flags[name])
			}
			return b.String()
		},
		object: func(kind metav1.TypeMeta) any {
			return flagzResponse{TypeMeta: kind, ObjectMeta: metav1.ObjectMeta{Name: component}, Flags: a.Flags()}
		},
	})
}

// A page is a response that has a text for human readers and a structured form.
type page struct {
	kind   string // kind of the structured form: "Statusz" or "Flagz"
	text   func() string
	object func(metav1.TypeMeta) any
}

// Media types of pages, in the kubelet's order of preference.
const (
	mediaJSON = "application/json"
	mediaYAML = "application/yaml"
	mediaText = "text/plain"
)

var pageMediaTypes = []string{mediaJSON, mediaYAML, mediaText}

// writePage responds with p in the format that the client accepts.
func writePage(w http.ResponseWriter, r *http.Request, p page) {
	name := strings.ToLower(p.kind)
	mediaType, version := negotiatePage(strings.Join(r.Header.Values("Accept"), ","), p.kind)
	w.Header().Set("Vary", "Accept")
	if version == "v1alpha1" {
		w.Header().Set("Warning", fmt.Sprintf("299 - \"This version of the %s endpoint is deprecated. Please use a newer version.\"", name))
	}
	object := func(encode func(any) ([]byte, error)) {
		contentType := fmt.Sprintf("%s;g=%s;v=%s;as=%s", mediaType, pageGroup, version, p.kind)
		replyObject(w, contentType, encode, p.object(metav1.TypeMeta{Kind: p.kind, APIVersion: pageGroup + "/" + version}))
	}
	switch mediaType {
	case mediaText:
		w.Header().Set("Content-Type", mediaText+"; charset=utf-8")
		fmt.Fprintf(w, textHeader+"%s", name, p.text())
	case mediaJSON:
		object(json.Marshal)
	case mediaYAML:
		object(yaml.Marshal)
	default:
		server.ReplyStatus(w, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
			Message: "only the following media types are accepted: " + strings.Join(pageMediaTypes, ", ") +
				"; " + mediaJSON + " and " + mediaYAML + " need the parameters v=v1beta1;g=" + pageGroup + ";as=" + p.kind,
		}})
	}
}

func replyObject(w http.ResponseWriter, contentType string, encode func(any) ([]byte, error), v any) {
	text, err := encode(v)
	if err != nil {
		http.Error(w, "encoding the response: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Write(text) // ignore an error: it means that the client has disconnected
}

// pageGroup is the API group of structured pages.
const pageGroup = "config.k8s.io"

// negotiatePage returns the media type that a client with this Accept header prefers, or "" if it
// accepts none. version is the API version of the structured form. As in the API server, a client
// must request this form with the parameters g, v and as. Without a header, the media type is
// mediaText.
func negotiatePage(accept, kind string) (mediaType, version string) {
	if strings.TrimSpace(accept) == "" {
		return mediaText, ""
	}
	for _, clause := range goautoneg.ParseAccept(accept) {
		for _, mediaType := range pageMediaTypes {
			if matchesMediaType(&clause, mediaType) && allowsParameters(clause.Params, mediaType, kind) {
				return mediaType, clause.Params["v"]
			}
		}
	}
	return "", ""
}

// matchesMediaType reports whether a clause of an Accept header accepts a media type.
func matchesMediaType(c *goautoneg.Accept, mediaType string) bool {
	main, sub, _ := strings.Cut(mediaType, "/")
	return c.Type == main && (c.SubType == sub || c.SubType == "*") || c.Type == "*" && c.SubType == "*"
}

// allowsParameters reports whether the parameters p of an Accept header allow serving a page of this
// kind in this media type. The text format has no versions, so the parameters "as", "g" and "v" are
// not allowed. The structured format has no default version, so all three are required.
func allowsParameters(p map[string]string, mediaType, kind string) bool {
	if p["stream"] != "" || p["sv"] != "" {
		return false
	}
	if mediaType == mediaText {
		for _, name := range []string{"as", "g", "v"} {
			if _, ok := p[name]; ok {
				return false
			}
		}
		return true
	}
	return p["as"] == kind && p["g"] == pageGroup && (p["v"] == "v1alpha1" || p["v"] == "v1beta1")
}
