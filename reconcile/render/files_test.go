package render

import (
	"errors"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/manifest/refs"
)

// TestMissingObjects checks that errors name the missing object with its kind, and do not
// contain data of other objects.
func TestMissingObjects(t *testing.T) {
	supply := &refs.Resolved{
		ConfigMaps: map[string]*v1.ConfigMap{"c": {ObjectMeta: metav1.ObjectMeta{Name: "c"}, Data: map[string]string{"k": "hunter2"}, BinaryData: map[string][]byte{"b": {0}}}},
		Secrets:    map[string]*v1.Secret{"s": {Data: map[string][]byte{"k": []byte("hunter2"), "nul": []byte("hunter2\x00")}}},
	}
	yes, mode := true, int32(0o644)
	key := func(key string) []v1.KeyToPath { return []v1.KeyToPath{{Key: key, Path: "p"}} }
	configMap := func(name string, items []v1.KeyToPath, optional *bool) v1.VolumeSource {
		return v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: name}, Items: items, Optional: optional, DefaultMode: &mode}}
	}
	for name, test := range map[string]struct {
		source v1.VolumeSource
		want   string
	}{
		"object and key exist":             {configMap("c", key("k"), nil), ""},
		"object missing":                   {configMap("d", nil, nil), `ConfigMap "d" does not exist`},
		"optional object missing":          {configMap("d", nil, &yes), ""},
		"key missing":                      {configMap("c", key("l"), nil), `key "l" of ConfigMap "c" does not exist`},
		"optional key missing":             {configMap("c", key("l"), &yes), ""},
		"file and directory with one path": {configMap("c", []v1.KeyToPath{{Key: "k", Path: "p"}, {Key: "k", Path: "p/q"}}, nil), `"p" is the path of a file and the parent directory of "p/q"`},
	} {
		_, err := PodVolumes{Pod: inputOf(v1.Container{}).Pod, Refs: supply}.Files(&v1.Volume{VolumeSource: test.source})
		if (err == nil) != (test.want == "") || err != nil && (!strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%s: got error %v, want one with %q and without the data of a Secret (\"\" means no error)", name, err, test.want)
		}
		if missing := strings.HasSuffix(test.want, "does not exist"); errors.Is(err, ErrMissing) != missing {
			t.Errorf("%s: error is ErrMissing: got %v, want %v", name, !missing, missing)
		}
	}
	local := func(name string) v1.LocalObjectReference { return v1.LocalObjectReference{Name: name} }
	for name, test := range map[string]struct {
		container v1.Container
		want      string
	}{
		"binary data as a variable": {v1.Container{Env: []v1.EnvVar{{Name: "A", ValueFrom: &v1.EnvVarSource{ConfigMapKeyRef: &v1.ConfigMapKeySelector{LocalObjectReference: local("c"), Key: "b"}}}}}, `setting variable "A" of container "main": key "b" of ConfigMap "c" does not exist`},
		"Secret missing":            {v1.Container{Env: []v1.EnvVar{{Name: "A", ValueFrom: &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: local("t"), Key: "b"}}}}}, `Secret "t" does not exist`},
		"NUL byte in a variable":    {v1.Container{Env: []v1.EnvVar{{Name: "A", ValueFrom: &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: local("s"), Key: "nul"}}}}}, `setting variable "A" of container "main": the value contains a NUL byte`},
		"Secret of envFrom missing": {v1.Container{EnvFrom: []v1.EnvFromSource{{SecretRef: &v1.SecretEnvSource{LocalObjectReference: local("t")}}}}, `envFrom[0]: Secret "t" does not exist`},
		"NUL byte in envFrom":       {v1.Container{EnvFrom: []v1.EnvFromSource{{SecretRef: &v1.SecretEnvSource{LocalObjectReference: local("s")}}}}, `envFrom[0]: key "nul" of Secret "s": the value contains a NUL byte`},
	} {
		in := inputOf(test.container)
		in.Refs = supply
		if _, err := Container(in); err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got error %v, want one with %q and without the data of a Secret (\"\" means no error)", name, err, test.want)
		}
	}
}
