package server

import (
	"crypto/sha256"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Object is any of Kubernetes' objects.
type Object interface {
	metav1.Object
	runtime.Object
}

// Objects are what manifests have beside their pods, each in order of namespace
// and name.
type Objects struct {
	ConfigMaps, Secrets, Claims, Volumes []*ObjectView
}

// ObjectView is one of Objects; all is required but Line.
type ObjectView struct {
	Object Object
	// Path and Line are as in PodView.
	Path string
	Line int
}

// UIDOf is the UID of something that has none of its own: that of its names, so
// that it outlives podd.
func UIDOf(names ...string) types.UID {
	sum := sha256.Sum256([]byte(strings.Join(names, "\x00")))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // RFC 9562, version 8
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
}
