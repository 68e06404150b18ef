# Image with the static program and nothing else.
#
#   docker build -t stillwell .
#
# `packaging/build image` uses a program that is built already in place of the first stage.
FROM docker.io/library/rust:1-alpine AS build
RUN apk add --no-cache build-base
COPY . /source
WORKDIR /source
RUN cargo build --locked --profile dist --package stillwell \
    && mkdir -p /out/usr/bin /out/tmp \
    && chmod 1777 /out/tmp \
    && cp target/dist/stillwell /out/usr/bin/ \
    && strip --strip-debug /out/usr/bin/stillwell

FROM scratch
COPY --from=build /out/ /
ENTRYPOINT ["/usr/bin/stillwell"]
