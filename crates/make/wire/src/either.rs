//! One of several kinds of connection, read and written as what it is.

/// Hands reading and writing of an enum on to what each of its variants holds.
macro_rules! delegate_io {
    ($either:ident: $($kind:ident),+) => {
        impl tokio::io::AsyncRead for $either {
            fn poll_read(
                self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
                buffer: &mut tokio::io::ReadBuf<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                match self.get_mut() {
                    $(Self::$kind(inner) => std::pin::Pin::new(inner).poll_read(context, buffer),)+
                }
            }
        }

        impl tokio::io::AsyncWrite for $either {
            fn poll_write(
                self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
                bytes: &[u8],
            ) -> std::task::Poll<std::io::Result<usize>> {
                match self.get_mut() {
                    $(Self::$kind(inner) => std::pin::Pin::new(inner).poll_write(context, bytes),)+
                }
            }

            fn poll_write_vectored(
                self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
                slices: &[std::io::IoSlice<'_>],
            ) -> std::task::Poll<std::io::Result<usize>> {
                match self.get_mut() {
                    $(Self::$kind(inner) => std::pin::Pin::new(inner).poll_write_vectored(context, slices),)+
                }
            }

            fn is_write_vectored(&self) -> bool {
                true
            }

            fn poll_flush(self: std::pin::Pin<&mut Self>, context: &mut std::task::Context<'_>) -> std::task::Poll<std::io::Result<()>> {
                match self.get_mut() {
                    $(Self::$kind(inner) => std::pin::Pin::new(inner).poll_flush(context),)+
                }
            }

            fn poll_shutdown(self: std::pin::Pin<&mut Self>, context: &mut std::task::Context<'_>) -> std::task::Poll<std::io::Result<()>> {
                match self.get_mut() {
                    $(Self::$kind(inner) => std::pin::Pin::new(inner).poll_shutdown(context),)+
                }
            }
        }
    };
}

pub(crate) use delegate_io;
