package supported

import "sync"

var ephemeralRules = sync.OnceValue(func() *rule {
	root := &rule{}
	for _, r := range containerFields {
		root.add(r)
	}
	root.add(row{"targetContainerName", supported, ""})
	return root
})
