package selinux

import (
	"errors"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// container returns a container that mounts the volume "data" with these options.
func container(o *v1.SELinuxOptions) v1.Container {
	c := v1.Container{VolumeMounts: []v1.VolumeMount{{Name: "data"}}}
	if o != nil {
		c.SecurityContext = &v1.SecurityContext{SELinuxOptions: o}
	}
	return c
}

func TestDecide(t *testing.T) {
	level := func(l string) *v1.SELinuxOptions { return &v1.SELinuxOptions{Level: l} }
	untyped := &v1.SELinuxOptions{Type: "spc_t"}
	recursive, option := v1.SELinuxChangePolicyRecursive, v1.SELinuxChangePolicyMountOption
	unlabeled := Mount{NeedsSameContext: true}
	labeled := func(l string) Mount { return Mount{"system_u:object_r:container_file_t:" + l, true} }
	for name, c := range map[string]struct {
		policy Policy
		pod    v1.PodSpec
		want   Mount
		err    ErrorKind // -1: none
	}{
		"host without SELinux": {Policy{}, v1.PodSpec{Containers: []v1.Container{container(level("s0"))}}, Mount{}, -1},
		"no options":           {mcs, v1.PodSpec{Containers: []v1.Container{container(nil)}}, unlabeled, -1},
		"options of the container": {mcs, v1.PodSpec{Containers: []v1.Container{container(level("s0:c1"))}},
			labeled("s0:c1"), -1},
		"options of the pod": {mcs, v1.PodSpec{SecurityContext: &v1.PodSecurityContext{SELinuxOptions: level("s0:c1")}, Containers: []v1.Container{container(nil)}},
			labeled("s0:c1"), -1},
		"the container overrides the pod": {mcs, v1.PodSpec{SecurityContext: &v1.PodSecurityContext{SELinuxOptions: level("s0:c1")}, Containers: []v1.Container{container(level("s0:c2"))}},
			labeled("s0:c2"), -1},
		"policy MountOption": {mcs, v1.PodSpec{SecurityContext: &v1.PodSecurityContext{SELinuxOptions: level("s0:c1"), SELinuxChangePolicy: &option}, Containers: []v1.Container{container(nil)}},
			labeled("s0:c1"), -1},
		"policy Recursive": {mcs, v1.PodSpec{SecurityContext: &v1.PodSecurityContext{SELinuxOptions: level("s0:c1"), SELinuxChangePolicy: &recursive}, Containers: []v1.Container{container(level("s0:c2")), container(nil)}},
			unlabeled, -1},
		"equal labels": {mcs, v1.PodSpec{InitContainers: []v1.Container{container(level("s0:c0,c1"))}, Containers: []v1.Container{container(level("s0:c1,c0"))}},
			labeled("s0:c0,c1"), -1},
		"a container without options": {mcs, v1.PodSpec{Containers: []v1.Container{container(level("s0:c1")), container(nil)}},
			labeled("s0:c1"), -1},
		"no level": {mcs, v1.PodSpec{Containers: []v1.Container{container(untyped), container(untyped)}}, unlabeled, -1},
		"different labels": {mcs, v1.PodSpec{Containers: []v1.Container{container(level("s0:c1")), container(level("s0:c2"))}},
			Mount{}, DifferentLabels},
		"an init container with another label": {mcs, v1.PodSpec{InitContainers: []v1.Container{container(level("s0:c1"))}, Containers: []v1.Container{container(level("s0:c2"))}},
			Mount{}, DifferentLabels},
		"a label and no level": {mcs, v1.PodSpec{Containers: []v1.Container{container(level("s0:c1")), container(untyped)}},
			Mount{}, DifferentLabels},
		"invalid level": {mcs, v1.PodSpec{Containers: []v1.Container{container(level(`"`))}}, Mount{}, InvalidLabel},
		"a container that does not mount the volume": {mcs, v1.PodSpec{Containers: []v1.Container{container(level("s0:c1")), {SecurityContext: &v1.SecurityContext{SELinuxOptions: level("s0:c2")}}}},
			labeled("s0:c1"), -1},
		"an ephemeral container": {mcs, v1.PodSpec{Containers: []v1.Container{container(level("s0:c1"))}, EphemeralContainers: []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon(container(level("s0:c2")))}}},
			labeled("s0:c1"), -1},
	} {
		got, err := c.policy.Decide(&c.pod, Volume{Name: "data"})
		kind := ErrorKind(-1)
		if e, is := errors.AsType[*Error](err); is {
			kind = e.Kind
		}
		if got != c.want || kind != c.err {
			t.Errorf("%s: got %+v (error %v), want %+v and error kind %d", name, got, err, c.want, c.err)
		}
	}
}

func TestApplies(t *testing.T) {
	once := []v1.PersistentVolumeAccessMode{v1.ReadWriteOncePod}
	many := []v1.PersistentVolumeAccessMode{v1.ReadWriteMany}
	single := Policy{OnlySinglePod: true}
	for name, c := range map[string]struct {
		policy Policy
		volume Volume
		want   bool
	}{
		"inline volume":                   {Policy{}, Volume{}, false},
		"any mode":                        {Policy{}, Volume{AccessModes: many}, true},
		"gate disabled, ReadWriteOncePod": {single, Volume{AccessModes: once}, true},
		"gate disabled, other mode":       {single, Volume{AccessModes: many}, false},
		"gate disabled, several modes":    {single, Volume{AccessModes: append(many, once...)}, false},
	} {
		if got := c.policy.Applies(c.volume); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
}

func TestMount(t *testing.T) {
	a, b := Mount{"a", true}, Mount{NeedsSameContext: true}
	for _, c := range []struct {
		mount Mount
		other string
		texts []string // of the error; nil means no error
	}{
		{a, "a", nil}, {b, "", nil}, {Mount{}, "a", nil},
		{a, "b", []string{`"b"`, `"a"`, "seLinuxChangePolicy"}}, {a, "", []string{"no SELinux label", `"a"`}}, {b, "a", []string{`"a"`, "no SELinux label"}},
	} {
		err := c.mount.CheckOther(c.other)
		if (err == nil) != (c.texts == nil) {
			t.Errorf("%+v with %q: got error %v, want one with %q (none if empty)", c.mount, c.other, err, c.texts)
		}
		for _, text := range c.texts {
			if err != nil && !strings.Contains(err.Error(), text) {
				t.Errorf("%+v with %q: got error %v, want one with %q", c.mount, c.other, err, text)
			}
		}
	}
	if got, want := (Mount{Context: "u:r:t:s0:c1,c2"}).Option(), `context="u:r:t:s0:c1,c2"`; got != want {
		t.Errorf("mount option: got %s, want %s", got, want)
	}
	if got := (Mount{NeedsSameContext: true}).Option(); got != "" {
		t.Errorf("mount option without a label: got %s, want none", got)
	}
}

func TestExcludesContext(t *testing.T) {
	for options, want := range map[string]bool{
		"": false, "noatime": false, "context=u:r:t:s0": true, `noatime,context="u:r:t:s0:c1,c2"`: true, "noatime,defcontext=u:r:t:s0": true,
		"fscontext=u:r:f:s0,rootcontext=u:r:g:s0": false, `x="a,defcontext=b"`: false,
	} {
		if got := ExcludesContext(options); got != want {
			t.Errorf("%s: got %t, want %t", options, got, want)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		options, context string
		storesLabels     bool
	}{
		{"rw,seclabel", "", true},
		{"rw", "", false},
		{"", "", false},
		{"rw,context=u:r:t:s0,relatime", "u:r:t:s0", false},
		{`rw,context="u:r:t:s0:c1,c2",errors=remount-ro`, "u:r:t:s0:c1,c2", false},
		{`rw,fscontext=u:r:f:s0,rootcontext=u:r:g:s0,seclabel`, "", true},
		{`rw,x="a,seclabel,context=b"`, "", false},
	} {
		if context, stores := ContextOption(c.options), StoresLabels(c.options); context != c.context || stores != c.storesLabels {
			t.Errorf("%s: got context %q, stores labels: %t; want context %q, stores labels: %t", c.options, context, stores, c.context, c.storesLabels)
		}
	}
}
