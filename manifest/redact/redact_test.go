package redact

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"podd/manifest/redact/redacttest"
)

// TestFields_AreDecided checks that every text field of a pod is listed either as public in this
// package or as private in redacttest. No other field may be listed.
func TestFields_AreDecided(t *testing.T) {
	fields := redacttest.Fill(&v1.Pod{}).Fields
	for field := range fields {
		kind, name, _ := strings.Cut(field, ".")
		isPublic, isPrivate := publicFields[kind][name], redacttest.Private[field] != ""
		switch {
		case !isPublic && !isPrivate:
			t.Errorf("%s is new: list it in fields.go if everybody may see it, else in redacttest.Private with the reason", field)
		case isPublic && isPrivate:
			t.Errorf("%s is listed as both public and private", field)
		}
	}
	for kind, names := range publicFields {
		for name := range names {
			if !fields[kind+"."+name] {
				t.Errorf("%s.%s is listed as public, but no pod has it", kind, name)
			}
		}
	}
	for field := range redacttest.Private {
		if !fields[field] {
			t.Errorf("%s is listed as private, but no pod has it", field)
		}
	}
	for field := range partlyPrivateFields {
		if redacttest.Private[field] == "" {
			t.Errorf("%s is partly public, but not listed as private", field)
		}
	}
}

// TestPod_HidesPrivate puts a marker into every text field of a pod. The redacted copy must
// contain the markers of public fields only.
func TestPod_HidesPrivate(t *testing.T) {
	var p v1.Pod
	marks := redacttest.Fill(&p)
	before := p.DeepCopy()
	text, err := json.Marshal(Pod(&p))
	if err != nil {
		t.Fatal(err)
	}
	if found := redacttest.FindMarks(marks.Private, string(text)); len(found) > 0 {
		t.Errorf("private fields in the copy: got %q, want none", found)
	}
	if found := redacttest.FindMarks(marks.Public, string(text)); len(found) != len(marks.Public) {
		for marker, field := range marks.Public {
			if !strings.Contains(string(text), marker) {
				t.Errorf("public field %s: got no marker in the copy, want the marker of the field", field)
			}
		}
	}
	if diff := cmp.Diff(before, &p); diff != "" {
		t.Errorf("Pod changed its argument (-before +after):\n%s", diff)
	}
	if len(marks.Private) < 50 || len(marks.Public) < 500 {
		t.Errorf("got only %d private and %d public markers, want at least 50 and 500", len(marks.Private), len(marks.Public))
	}
}

func TestPod_KeepsConfigAnnotations(t *testing.T) {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"kubernetes.io/config.source": "file", v1.LastAppliedConfigAnnotation: "{}"}}}
	if diff := cmp.Diff(map[string]string{"kubernetes.io/config.source": "file"}, Pod(p).Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if got := Pod(&v1.Pod{}).Annotations; got != nil {
		t.Errorf("annotations of a pod without annotations: got %v, want none", got)
	}
}

// TestText_HidesPrivate puts the markers of all fields into one text. Text must remove the
// markers of private fields, except those of the status.
func TestText_HidesPrivate(t *testing.T) {
	var p v1.Pod
	marks := redacttest.Fill(&p)
	maps.DeleteFunc(marks.Private, func(_, path string) bool { return strings.HasPrefix(path, "Pod.Status.") })
	private, public := slices.Sorted(maps.Keys(marks.Private)), slices.Sorted(maps.Keys(marks.Public))
	quoted := strings.Join(slices.Concat(private, public), `", "`)
	got := Text(quoted, nil, &p)
	if found := redacttest.FindMarks(marks.Private, got); len(found) > 0 {
		t.Errorf("private fields in the text: got %q, want none", found)
	}
	if found := redacttest.FindMarks(marks.Public, got); len(found) != len(public) {
		t.Errorf("public fields in the text: got %d, want all %d", len(found), len(public))
	}
}

// TestStatusText_HidesPrivate is like TestText_HidesPrivate, but StatusText must also remove the
// markers of private fields of the status.
func TestStatusText_HidesPrivate(t *testing.T) {
	for form, fill := range map[string]func(any, ...string) *redacttest.Marks{`%q`: redacttest.Fill, `\"%s\"`: redacttest.FillShort} {
		var p v1.Pod
		marks := fill(&p)
		var quoted []string
		for marker := range marks.Private {
			if !strings.HasSuffix(marks.Private[marker], ".FieldsV1.Raw") {
				quoted = append(quoted, fmt.Sprintf(form, marker))
			}
		}
		for marker := range marks.Public {
			quoted = append(quoted, fmt.Sprintf(form, marker))
		}
		got := StatusText(strings.Join(quoted, " "), nil, &p)
		if found := redacttest.FindMarks(marks.Private, got); len(found) > 0 {
			t.Errorf("%s: private fields in the text: got %q, want none", form, found)
		}
		if found := redacttest.FindMarks(marks.Public, got); len(found) != len(marks.Public) {
			t.Errorf("%s: public fields in the text: got %d, want all %d", form, len(found), len(marks.Public))
		}
	}
}

func TestStatusText(t *testing.T) {
	p := &v1.Pod{Status: v1.PodStatus{Message: "token abcdef-0123456789\nis bad\n", Reason: "Error"}}
	for text, want := range map[string]string{
		"it says: is bad":                     "it says: is bad",
		`it says "is bad"`:                    `it says "<redacted>"`,
		"abcdef-0123456789 is not allowed":    "<redacted> is not allowed",
		"token abcdef-0123456789 is too long": "<redacted> is too long",
		"bad token, Error":                    "bad token, Error",
	} {
		if got := StatusText(text, p); got != want {
			t.Errorf("StatusText(%q): got %q, want %q", text, got, want)
		}
		if got := Text(text, p); got != text {
			t.Errorf("Text(%q): got %q, want the same", text, got)
		}
	}
}

// TestText_HidesShort is like TestText_HidesPrivate, with short lowercase markers. Text must
// remove a short marker where the text marks it as a value, and must keep it elsewhere. The test
// omits the JSON of managed fields, because its marker is only a part of the value.
func TestText_HidesShort(t *testing.T) {
	var p v1.Pod
	marks := redacttest.FillShort(&p)
	maps.DeleteFunc(marks.Private, func(_, path string) bool {
		return strings.HasPrefix(path, "Pod.Status.") || strings.HasSuffix(path, ".FieldsV1.Raw")
	})
	private, public := slices.Sorted(maps.Keys(marks.Private)), slices.Sorted(maps.Keys(marks.Public))
	all := slices.Concat(private, public)
	for _, form := range []string{"NAME=%", "NAME=%,", "GET /?token=%&", `"%"`, "'%'", "`%`", `\"%\"`, `\\\"%\\\"`, `NAME="%"`, `"NAME=%"`, `["%" "x"]`} {
		var text []string
		for _, marker := range all {
			text = append(text, strings.ReplaceAll(form, "%", marker))
		}
		got := Text(strings.Join(text, " "), nil, &p)
		if found := redacttest.FindMarks(marks.Private, got); len(found) > 0 {
			t.Errorf("%s: private fields in the text: got %q, want none", form, found)
		}
		if found := redacttest.FindMarks(marks.Public, got); len(found) != len(public) {
			t.Errorf("%s: public fields in the text: got %d, want all %d", form, len(found), len(public))
		}
	}
	if text := strings.Join(all, " "); Text(text, &p) != text {
		t.Error("text with ordinary words: got a masked word, want none masked")
	}
}

func TestIsPrivate(t *testing.T) {
	for path, want := range map[string]bool{
		"metadata.annotations[example.com/token]":                               true,
		"spec.containers[0].env[1].value":                                       true,
		"spec.initContainers[0].livenessProbe.httpGet.httpHeaders[0].value":     true,
		"spec.volumes[0].csi.volumeAttributes[a]":                               true,
		"spec.volumes[0].flexVolume.options[a]":                                 true,
		"spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.annotations[a]": true,
		"spec.volumes[0].gitRepo.repository":                                    true,
		"spec.volumes[0].azureDisk.dataDiskURI":                                 true,
		"spec.securityContext.windowsOptions.gmsaCredentialSpec":                true,
		"spec.containers[0].env[1].name":                                        false,
		"metadata.labels[a]":                                                    false,
		"spec.tolerations[0].value":                                             false,
		"spec.dnsConfig.options[0].value":                                       false,
		"metadata.annotations":                                                  false,
	} {
		if got := IsPrivate(path); got != want {
			t.Errorf("IsPrivate(%q): got %v, want %v", path, got, want)
		}
	}
}

func TestData(t *testing.T) {
	s := &v1.Secret{Data: map[string][]byte{"p": []byte("hunter2-and-more\n")}, StringData: map[string]string{"q": "tr0ub4dor"}}
	if got, want := Data(`exec: "hunter2-and-more": tr0ub4dor`, nil, s), `exec: "<redacted>": <redacted>`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestText(t *testing.T) {
	var p v1.Pod
	p.Spec.Containers = []v1.Container{{
		Name: "app", Image: "registry.example/web:1", VolumeMounts: []v1.VolumeMount{{MountPath: "/var/lib/data"}},
		Env: []v1.EnvVar{
			{Name: "PASSWORD", Value: "hunter2-and-more"}, {Name: "SHORT", Value: "80"}, {Name: "STAGE", Value: "production"},
			{Name: "PIN4", Value: "tiger"}, {Name: "USER", Value: "data"}, {Name: "NEAR", Value: "regi"},
			{Name: "DATA", Value: "/var/lib/data"}, {Name: "PIN", Value: "4711-0815"}, {Name: "HEX", Value: strings.Repeat("0123abcd", 8)}, {Name: "LINES", Value: "first part\tof it"}, {Name: "PART", Value: "hunter2-and"},
			{Name: "KEY", Value: "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA\n"},
		},
		LivenessProbe:  &v1.Probe{ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{HTTPHeaders: []v1.HTTPHeader{{Value: "Bearer abcdef-0123456789"}}}}},
		ReadinessProbe: &v1.Probe{ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Path: "/healthy?token=1234567890"}}},
	}}
	p.Annotations = map[string]string{v1.LastAppliedConfigAnnotation: `{"imagePullSecrets": []}`, "kubernetes.io/config.hash": "0123456789abcdef"}
	for text, want := range map[string]string{
		"":                                               "",
		"the token abcdef-0123456789 is bad":             "the token <redacted> is bad",
		"pod web_default(0123456789abcdef)":              "pod web_default(0123456789abcdef)",
		"add imagePullSecrets":                           "add imagePullSecrets",
		"nothing of it":                                  "nothing of it",
		`bad variable "hunter2-and-more"`:                `bad variable "<redacted>"`,
		"PASSWORD=hunter2-and-more,PORT=80":              "PASSWORD=<redacted>,PORT=80",
		"is hunter2-and part":                            "is <redacted> part",
		"production, productions":                        "production, productions",
		"4711-0815, 14711-0815":                          "<redacted>, 14711-0815",
		"exec 0123abcd0123: not found":                   "exec <redacted>: not found",
		"first part of it: not found":                    "<redacted>: not found",
		"bad variable hunter2-and-m…":                    "bad variable <redacted>",
		"mounting /var/lib/data: no such file":           "mounting /var/lib/data: no such file",
		`"-----BEGIN KEY-----\\nMIIEpAIBAAKCAQEA\\n"`:    `"<redacted>\\n<redacted>\\n"`,
		"Get http://10.0.0.1/healthy?token=1234567890":   "Get http://10.0.0.1/healthy?<redacted>",
		"PASSWORD=tiger":                                 "PASSWORD=<redacted>",
		"env PASSWORD=tiger, PORT=80: invalid":           "env PASSWORD=<redacted>, PORT=80: invalid",
		"PASSWORD=tigers, PASSWORD=a-tiger":              "PASSWORD=tigers, PASSWORD=a-tiger",
		"the tiger, not `tiger`":                         "the tiger, not `<redacted>`",
		`"tiger", 'tiger', \"tiger\", "tiger' "a tiger"`: `"<redacted>", '<redacted>', \"<redacted>\", "tiger' "a tiger"`,
		"STAGE=production, a production":                 "STAGE=<redacted>, a production",
		"PASSWORD=tige…":                                 "PASSWORD=<redacted>",
		`invalid "PASSWORD=tige…`:                        `invalid "PASSWORD=<redacted>`,
		"a tige…":                                        "a tige…",
		`STAGE="produc…`:                                 `STAGE="<redacted>`,
		"the produc…":                                    "the produc…",
		"USER=data":                                      "USER=data",
		"NEAR=regi":                                      "NEAR=<redacted>",
	} {
		if got := Text(text, &p); got != want {
			t.Errorf("Text(%q): got %q, want %q", text, got, want)
		}
	}
	if got := Text("hunter2-and-more"); got != "hunter2-and-more" {
		t.Errorf("without a pod: got %q, want the text unchanged", got)
	}
}

func TestIsPlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.StringMatching(`[ -~]*`)).Draw(t, "s")
		quoted := strconv.Quote(s)
		if isPlain(s) && (quoted != `"`+s+`"` || replaceControls(s) != s) {
			t.Errorf("isPlain(%s): got true, want false, because it is shown as %s or %q", quoted, quoted, replaceControls(s))
		}
	})
	if !isPlain("https://example.com/a?b=c d") {
		t.Error("a URL: got false, want true")
	}
}
