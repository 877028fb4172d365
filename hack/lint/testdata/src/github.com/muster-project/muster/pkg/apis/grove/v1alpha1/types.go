// Package v1alpha1 has types for the API.
package v1alpha1

import client "k8s.io/client-go" // want `imports k8s.io/client-go: API types need apimachinery only`

// Name is a name.
const Name = client.Name
