module example.org/go-service

go 1.22
