// Package metadata reads the name, zone and provider ID of the node from the metadata service of
// its cloud. It sends requests for these paths:
//
//	OpenStack   /openstack/latest/meta_data.json, and the path of EC2 for the instance type
//	EC2         a token (IMDSv2), the instance-identity document, local-hostname
//	GCE         instance/{name,zone,machine-type}, project/project-id
//
// An attacker in the network may forge responses. The size of a response is therefore limited,
// redirects are not followed, proxies are not used, and all values are validated. A response
// without a name, a provider ID or a zone is an error.
package metadata
