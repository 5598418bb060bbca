package manifest

import (
	"encoding/json"
	"hash/fnv"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/dump"
)

// KubeletHash is what a kubelet knows a container by, in the digits that it writes
// down: of name and image alone. One that finds another on a container of its pods
// ends it and starts its own, whatever the restart policy says.
func KubeletHash(c *v1.Container) string {
	text, err := json.Marshal(map[string]string{"name": c.Name, "image": c.Image})
	if err != nil {
		return "" // strings always marshal
	}
	h := fnv.New32a()
	h.Write([]byte(dump.ForHash(text)))
	return strconv.FormatUint(uint64(h.Sum32()), 16)
}
