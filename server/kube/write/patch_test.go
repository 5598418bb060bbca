package write

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/server"
)

const (
	jsonPatch      = "application/json-patch+json"
	mergePatch     = "application/merge-patch+json"
	strategicPatch = "application/strategic-merge-patch+json"
)

// applyTestPatch returns the result of applying the body of a PATCH request to o.
func applyTestPatch(o server.Object, mediaType, body string) ([]byte, error) {
	r := httptest.NewRequest("PATCH", "/", strings.NewReader(body))
	r.Header.Set("Content-Type", mediaType)
	p, err := readPatch(httptest.NewRecorder(), r)
	if err != nil {
		return nil, err
	}
	return p.apply(o)
}

func patchedPod() *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"app": "web"}},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "a", Image: "a:1"}, {Name: "b", Image: "b:1"}}},
	}
}

func TestPatch(t *testing.T) {
	for _, c := range []struct{ name, mediaType, body, labels, images string }{
		{"a label added", mergePatch, `{"metadata":{"labels":{"x":"y"}}}`, "app=web,x=y", "a:1 b:1"},
		{"a label removed", mergePatch, `{"metadata":{"labels":{"app":null}}}`, "", "a:1 b:1"},
		{"a list replaced", mergePatch, `{"spec":{"containers":[{"name":"a","image":"a:2"}]}}`, "app=web", "a:2"},
		{"a list merged", strategicPatch, `{"spec":{"containers":[{"name":"b","image":"b:2"}]}}`, "app=web", "a:1 b:2"},
		{"an element removed", strategicPatch, `{"spec":{"containers":[{"name":"b","$patch":"delete"}]}}`, "app=web", "a:1"},
		{"operations", jsonPatch, `[{"op":"test","path":"/metadata/name","value":"web"},{"op":"replace","path":"/spec/containers/1/image","value":"b:3"}]`, "app=web", "a:1 b:3"},
		{"charset", mergePatch + "; charset=utf-8", `{}`, "app=web", "a:1 b:1"},
	} {
		o := patchedPod()
		body, err := applyTestPatch(o, c.mediaType, c.body)
		var is v1.Pod
		if err == nil {
			err = json.Unmarshal(body, &is)
		}
		if err != nil {
			t.Errorf("%s: got error %v, want none", c.name, err)
			continue
		}
		var images []string
		for _, c := range is.Spec.Containers {
			images = append(images, c.Image)
		}
		if got := metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: is.Labels}); got != c.labels && (c.labels != "" || len(is.Labels) > 0) {
			t.Errorf("%s: got labels %q, want %q", c.name, got, c.labels)
		}
		if got := strings.Join(images, " "); got != c.images {
			t.Errorf("%s: got images %q, want %q", c.name, got, c.images)
		}
		if o.Spec.Containers[1].Image != "b:1" || len(o.Labels) != 1 {
			t.Errorf("%s changed the object that it was applied to: %+v", c.name, o)
		}
	}
}

func TestPatch_Errors(t *testing.T) {
	many := "[" + strings.Repeat(`{"op":"test","path":"/metadata/name","value":"web"},`, maxOperations) + `{"op":"test","path":"/metadata/name","value":"web"}]`
	// Each operation "copy" doubles the size of the object.
	bomb := `[{"op":"add","path":"/metadata/annotations","value":{"a":"` + strings.Repeat("x", 1<<20) + `"}}` +
		strings.Repeat(`,{"op":"copy","from":"/metadata","path":"/metadata/x"}`, 10) + "]"
	for _, c := range []struct {
		name, mediaType, body string
		code                  int
		words                 string
	}{
		{"no media type", "", `{}`, http.StatusUnsupportedMediaType, "accepted media types include"},
		{"plain JSON", "application/json", `{}`, http.StatusUnsupportedMediaType, strategicPatch},
		{"too large", mergePatch, strings.Repeat(" ", maxBodyBytes+1), http.StatusRequestEntityTooLarge, "limit is 3145728"},
		{"too many", jsonPatch, many, http.StatusRequestEntityTooLarge, "10000, got 10001"},
		{"no JSON", mergePatch, `{`, http.StatusBadRequest, "decoding patch"},
		{"no JSON", strategicPatch, `{`, http.StatusBadRequest, "decoding patch"},
		{"no JSON", jsonPatch, `{`, http.StatusBadRequest, "decoding patch"},
		{"no operations", jsonPatch, `{"op":"add"}`, http.StatusBadRequest, "decoding patch"},
		{"a test fails", jsonPatch, `[{"op":"test","path":"/metadata/name","value":"db"}]`, http.StatusUnprocessableEntity, "metadata/name"},
		{"no such path", jsonPatch, `[{"op":"remove","path":"/spec/containers/7"}]`, http.StatusUnprocessableEntity, "spec/containers"},
		{"copies", jsonPatch, bomb, http.StatusUnprocessableEntity, "copy"},
		{"no key", strategicPatch, `{"spec":{"containers":[{"image":"c"}]}}`, http.StatusUnprocessableEntity, "name"},
		{"an unknown directive", strategicPatch, `{"spec":{"containers":[{"name":"a","$patch":"explode"}]}}`, http.StatusUnprocessableEntity, "explode"},
	} {
		_, err := applyTestPatch(patchedPod(), c.mediaType, c.body)
		if err == nil {
			t.Errorf("%s: got no error, want one", c.name)
			continue
		}
		if s := server.KubeStatus(err); int(s.Code) != c.code || !strings.Contains(s.Message, c.words) {
			t.Errorf("%s: got %d %.200q, want %d and %q", c.name, s.Code, s.Message, c.code, c.words)
		}
	}
}

// FuzzPatch checks that a patch results in either valid JSON or a client error.
func FuzzPatch(f *testing.F) {
	kinds := []string{jsonPatch, mergePatch, strategicPatch}
	f.Add(uint8(0), `[{"op":"move","from":"/spec/containers/0","path":"/spec/containers/-"}]`)
	f.Add(uint8(0), `[{"op":"copy","from":"","path":"/metadata/labels"}]`)
	f.Add(uint8(1), `{"spec":{"containers":null},"metadata":[]}`)
	f.Add(uint8(2), `{"spec":{"$setElementOrder/containers":[{"name":"b"},{"name":"a"}],"containers":[{"name":"a","$patch":"replace"}]}}`)
	f.Add(uint8(2), `{"metadata":{"$deleteFromPrimitiveList/finalizers":["a"],"labels":{"$retainKeys":["x"]}}}`)
	f.Fuzz(func(t *testing.T, kind uint8, body string) {
		is, err := applyTestPatch(patchedPod(), kinds[int(kind)%len(kinds)], body)
		switch {
		case err == nil && !json.Valid(is):
			t.Errorf("%s of %q: got %q, want valid JSON", kinds[int(kind)%len(kinds)], body, is)
		case err != nil && server.KubeStatus(err).Code/100 != 4:
			t.Errorf("%s of %q: got error %v, want a client error", kinds[int(kind)%len(kinds)], body, err)
		}
	})
}
